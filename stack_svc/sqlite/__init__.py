"""
The store on SQLite: it implements ``stack_svc.store`` over one file, without rules of its own
(docs/reference/engine.md, "Tables").
"""
