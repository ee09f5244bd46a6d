"""One folder per platform behind the driver contract (protos/pkger/driver/v1)."""
