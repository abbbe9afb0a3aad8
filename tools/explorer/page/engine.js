// The formulas of redblue, as WebAssembly in a worker. redblue.ask(["plan", "--n", ...]) returns a
// promise of {code, data, words}: exit code, standard output and lines of standard error of this
// command. redblue.engine({arguments: [...]}) returns a promise of its JSON document.
"use strict";

(() => {
  // Runs in the worker. Its text is all that it has.
  function work() {
    Error.stackTraceLimit = 0;  // a C++ exception would collect a stack that nobody reads
    let instance;
    // The module has no files, threads, clock or arithmetic. Only a mistake calls these.
    const missing = (name) => () => { throw new Error(`the page has no ${name}`); };
    const known = {environ_sizes_get: (count, size) => {
      new Uint32Array(instance.exports.memory.buffer).fill(0, count / 4, count / 4 + 1)
        .fill(0, size / 4, size / 4 + 1);
      return 0;
    }, environ_get: () => 0, emscripten_notify_memory_growth: () => {}};
    const imports = new Proxy({}, {get: (_, name) => known[name] ?? missing(name)});

    function answer(request) {
      const {room, answer, memory} = instance.exports;
      const text = new TextEncoder().encode(request);
      const at = room(text.length);
      new Uint8Array(memory.buffer).set(text, at);
      const bytes = new Uint8Array(memory.buffer), begin = answer(at);
      const now = new Uint8Array(memory.buffer);
      return new TextDecoder().decode(now.slice(begin, now.indexOf(0, begin)));
    }

    onmessage = async ({data}) => {
      if (data.module) {
        try {
          instance = await WebAssembly.instantiate(data.module, {env: imports,
            wasi_snapshot_preview1: imports});
          instance.exports._initialize?.();
          postMessage({ready: true});
        } catch (error) {
          postMessage({failed: String(error.message ?? error)});
        }
        return;
      }
      const begin = performance.now();
      let result, is_broken = false;
      try {
        result = answer(JSON.stringify({arguments: data.arguments}));
      } catch (error) {  // out of memory, for example
        is_broken = true;
        result = JSON.stringify({code: 1, data: "", words: [String(error.message ?? error)]});
      }
      postMessage({result, is_broken, milliseconds: performance.now() - begin});
    };
  }

  // The build appends the module to this script, compressed, as base64.
  async function compile() {
    const zipped = await (await fetch(`data:application/gzip;base64,${redblue.module}`)).blob();
    delete redblue.module;
    const bytes = zipped.stream().pipeThrough(new DecompressionStream("gzip"));
    return WebAssembly.compile(await new Response(bytes).arrayBuffer());
  }

  const source = URL.createObjectURL(new Blob([`(${work})()`], {type: "text/javascript"}));
  const answers = new Map();  // by arguments: the same question has the same answer
  const waiting = [];         // {arguments, resolve, reject}, in the order of the questions
  let compiled, worker, broken = null, is_ready = false, asked = null, patience = null;

  function refuse(question, error) {
    answers.delete(question.key);
    question.reject(error);
  }
  function stop_working(error) {
    broken = error;
    while (waiting.length > 0) refuse(waiting.shift(), error);
  }

  async function start() {
    is_ready = false;
    worker = new Worker(source);
    const mine = worker;
    worker.onmessage = ({data}) => {
      if (data.failed) {
        stop_working(new Error(data.failed));
        return;
      }
      if (data.ready) {
        is_ready = true;
      } else {
        asked.resolve({...JSON.parse(data.result), milliseconds: data.milliseconds});
        asked = null;
        if (data.is_broken) {
          worker.terminate();
          start();
          return;
        }
      }
      next();
    };
    compiled ??= compile();
    try {
      const module = await compiled;
      mine.postMessage({module});
    } catch (error) {
      stop_working(error);
    }
  }
  function next() {
    if (!is_ready || asked || waiting.length === 0) return;
    asked = waiting.shift();
    worker.postMessage({arguments: asked.arguments});
  }

  redblue.ask = (words) => {
    const key = JSON.stringify(words);
    if (broken) return Promise.reject(broken);
    if (asked?.key === key) clearTimeout(patience);  // somebody waits for it again
    if (!answers.has(key)) {
      const answer = new Promise((resolve, reject) => waiting.push({key, arguments: words, resolve, reject}));
      answers.set(key, answer);
      if (answers.size > 1000) answers.delete(answers.keys().next().value);
      answer.catch(() => {});  // each caller handles its own
      if (!worker) start(); else next();
    }
    return answers.get(key);
  };

  // Forgets all questions without an answer. Their promises are rejected with redblue.cancelled. A
  // question that the worker has already begun gets a moment to end before the worker is replaced.
  redblue.cancelled = new Error("cancelled");
  redblue.cancel = () => {
    while (waiting.length > 0) refuse(waiting.shift(), redblue.cancelled);
    const busy = asked;
    if (!busy) return;
    clearTimeout(patience);
    patience = setTimeout(() => {
      if (asked !== busy) return;
      worker.terminate();
      asked = null;
      refuse(busy, redblue.cancelled);
      start();
    }, 100);
  };

  redblue.engine = async (request) => {
    const {code, data, words} = await redblue.ask(request.arguments);
    if (code !== 0) throw new Error(words.join("\n"));
    return JSON.parse(data);
  };
})();
