"""``pkger repo index``: makes the index files of a repository from its folder."""
