"""The sections of the report: each collects what it says, and draws it from that alone."""
