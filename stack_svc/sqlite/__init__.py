"""
The store on SQLite: the protocol of ``stack_svc.store`` over one file, and nothing else (docs/reference/engine.md,
"Tables").
"""
