"""Effects if everybody follows the protocol: deviations, artificial censoring and its weights."""
