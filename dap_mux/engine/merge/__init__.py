"""Fan-in reducers: many ranks' answers and events become one. Pure, one module a kind."""
