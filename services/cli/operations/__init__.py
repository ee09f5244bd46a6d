"""Operations: followed to their end, listed, recovered, cancelled."""
