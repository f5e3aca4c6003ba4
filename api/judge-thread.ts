import { parentPort } from 'node:worker_threads'
import { dryRunPolicy, simulateCall } from '../safety/replay.ts'
import { loadSql } from '../safety/sql/inspect.ts'
import { toolFacts } from '../tools/registry.ts'
import type { JudgeQuestion } from './judge-apart.ts'

/** The thread that judges. It has the rules and the tools, but no database and no secrets. */
await loadSql()

parentPort?.on('message', (asked: JudgeQuestion) => {
  const answer =
    asked.kind === 'supposed'
      ? dryRunPolicy(asked.input, toolFacts, asked.nowMs)
      : simulateCall(asked.call, toolFacts, asked.state, asked.policy, asked.nowMs)
  // Converts the result, because only plain data can be sent between threads.
  parentPort?.postMessage(JSON.parse(JSON.stringify(answer)))
})
parentPort?.postMessage('ready')
