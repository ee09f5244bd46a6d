"""ApplierService: runs plans, undoes what fails. Never decides what to change."""
