"""Tables of a database server: plain statements in its dialect, and their rows in local files.

A `Warehouse` is a connection whose errors say what is wrong without any credentials. `statements`
writes the few statements that there are, `dialects` translates them, `keys` brings the ids that
rows are wanted of to the server, and `pull` keeps the rows in a `riskset.data.table_store`.
"""
