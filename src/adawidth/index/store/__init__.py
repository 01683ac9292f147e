"""What an index folder has on disk: the manifest, segments and the lock; commits that are whole or not at all.
All of it may come from anywhere and is checked before it is believed."""
