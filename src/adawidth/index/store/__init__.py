"""What an index folder has on disk: the manifest, segments and the lock; commits that are whole or not at all."""
