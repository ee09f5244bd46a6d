"""An operation around its execution: what was asked for, the lease, the journal, the events, the record."""
