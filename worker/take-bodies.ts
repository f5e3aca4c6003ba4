import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { takeNextPart } from '../db/alerts/waiting-bodies.ts'
import type { Db } from '../db/connect.ts'
import type { Runs } from '../effects/runs.ts'
import { tellRuns } from '../effects/tell-runs.ts'

const pollEveryMs = 500

type BodyDeps = { db: Db; runs: Pick<Runs, 'tell' | 'triggerQueue'>; log: Pick<Logger, 'warn'> }

/**
 * Stores oversized request bodies with alerts, part by part, until stopped. Any number of workers
 * may share this work.
 */
export function startBodies(deps: BodyDeps): { stop(): Promise<void> } {
  const stopping = new AbortController()
  const { signal } = stopping
  const taking = (async () => {
    while (!signal.aborted) {
      const taken = await takeNextPart(deps.db).catch((error) => {
        deps.log.warn({ err: error }, 'a part of a large alert body could not be stored; the worker tries again')
        return null
      })
      if (taken) await tellRuns(deps, taken)
      else await sleep(pollEveryMs, undefined, { signal }).catch(() => {})
    }
  })()
  return {
    async stop() {
      stopping.abort()
      await taking
    },
  }
}
