"""The scikit-learn surface: translate what users pass, call the layers below, store the answer."""
