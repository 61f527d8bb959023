"""``python -m riskset`` is the command line."""

from riskset.cli.main import main

if __name__ == "__main__":
    main()
