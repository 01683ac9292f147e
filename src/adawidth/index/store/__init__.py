"""What an index folder has on disk: the manifest, segments and the lock. Commits are atomic.
Any file may come from anywhere, so it is checked before it is trusted."""
