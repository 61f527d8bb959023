# docker build --tag riskset . && docker run --rm --volume "$PWD:/data" riskset --help
FROM python:3.12-slim
COPY pyproject.toml README.md LICENSE /build/
COPY src /build/src
RUN pip install --no-cache-dir /build \
    && rm -rf /build \
    && useradd --create-home --uid 1000 riskset
# Kernels are compiled for the processor that runs the image, into this user's cache.
USER 1000
WORKDIR /data
ENTRYPOINT ["riskset"]
