// The placeholder of leeway.js loads no adapter.
