"""What a published package says of itself: versions, ranges of versions, the manifest. Pure: text and values only."""
