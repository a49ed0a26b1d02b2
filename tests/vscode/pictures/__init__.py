"""Takes the pictures of the documentation and of every view, light and dark: `make pictures`.

Those of four real ranks and of a job that hangs are the documentation's. All others are for
whoever changes a view, in build/pictures: look at each of them.

- `camera`    a window, and how a part of it becomes a picture in each theme.
- `training`  four real ranks: every view of a session, its pickers and inputs, and a rank's death.
- `hanging`   a job that hangs: Parallel Stacks, and why it does not move.
- `newcomer`  before there is a session: the walkthrough, the doctor, the first error, the starts.
- `pods`      the pickers of a cluster, in a network of their own.
- `many`      64 and 512 simulated ranks.
"""
