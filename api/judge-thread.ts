import { parentPort } from 'node:worker_threads'
import { dryRunPolicy, simulateCall } from '../safety/replay.ts'
import { loadSql } from '../safety/sql/inspect.ts'
import { toolFacts } from '../tools/registry.ts'
import type { JudgeQuestion } from './judge-apart.ts'

/** A thread that judges: it knows the rules and the tools, and neither a database nor a secret. */
await loadSql()

parentPort?.on('message', (asked: JudgeQuestion) => {
  const answer =
    asked.kind === 'supposed'
      ? dryRunPolicy(asked.input, toolFacts, asked.nowMs)
      : simulateCall(asked.call, toolFacts, asked.state, asked.policy, asked.nowMs)
  // What goes to another thread is data alone.
  parentPort?.postMessage(JSON.parse(JSON.stringify(answer)))
})
parentPort?.postMessage('ready')
