// The placeholder of leeway.js loads no second script.
