console.warn('[leeway] this binary was built without its browser bundle: run "make build", then start build/leeway');
