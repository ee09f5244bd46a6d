"""One folder for each driver, and what is the same for all of them; docs/drivers.md says how to add one."""
