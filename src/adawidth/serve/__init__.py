"""The HTTP service: an index behind FastAPI, its page, and its client.
`run.serve` starts it, `app.create_app` makes the app; routes/ has one file per group of endpoints. Nothing here computes a ranking."""
