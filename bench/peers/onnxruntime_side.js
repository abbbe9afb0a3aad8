// ONNX Runtime's side of tools/bench --peers: computes one problem on request. peers.py describes the requests.
//
//   node onnxruntime_side.js INPUTS RESULTS THREADS
//
// A variant is the file of a model. Results have the same buffers in every run.
'use strict';

const fs = require('fs');
const path = require('path');
const readline = require('readline');
const ort = require('onnxruntime-node');

const [inputs, results, threads] = process.argv.slice(2);
let session, given, made;

async function use(model) {
  if (session) {
    await session.release();
  }
  session = await ort.InferenceSession.create(
      model, {intraOpNumThreads: Number(threads), interOpNumThreads: 1, logSeverityLevel: 3});
  given = {};
  made = {};
  for (const {name, shape} of session.inputMetadata) {
    const bytes = fs.readFileSync(path.join(inputs, name));
    const words = new Float32Array(bytes.length / 4);
    new Uint8Array(words.buffer).set(bytes);
    given[name] = new ort.Tensor('float32', words, shape);
  }
  for (const {name, shape} of session.outputMetadata) {
    made[name] = new ort.Tensor('float32', new Float32Array(shape[0] * shape[1]), shape);
  }
  return 'ok';
}

async function run() {
  const start = process.hrtime.bigint();
  await session.run(given, made);
  return (Number(process.hrtime.bigint() - start) / 1e6).toFixed(4);
}

async function save() {
  for (const [name, tensor] of Object.entries(made)) {
    fs.writeFileSync(path.join(results, name), tensor.data);
  }
  return 'ok';
}

async function main() {
  console.log('ONNX Runtime ' + ort.env.versions.node);
  for await (const line of readline.createInterface({input: process.stdin})) {
    const [word, variant] = line.split(' ', 2);
    const answer = word === 'use' ? use(variant) : word === 'run' ? run() : save();
    console.log(await answer.catch((error) => 'failed: ' + error.message.split('\n')[0]));
  }
}

main();
