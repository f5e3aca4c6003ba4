import { databaseTime } from '../db/clock.ts'
import {
  type AskedWitnesses,
  hostsSaidOff,
  openStarts,
  readDeaths,
  readJudgedDeaths,
  suspectsOf,
} from '../db/inventory/deaths.ts'
import type { JudgedDeath } from '../domain/death.ts'
import type { IncidentEvent } from '../domain/event.ts'
import type { PlanStep } from '../domain/placement.ts'
import { whyNotDead } from '../safety/death.ts'
import { type EffectDeps, EffectRefused } from './effect.ts'

type WitnessDeps = Pick<EffectDeps, 'db' | 'askMonitoring'>

/** Queries monitoring about the hosts whose VMs the steps of a plan start elsewhere. */
async function askAbout({ db, askMonitoring }: WitnessDeps, steps: readonly PlanStep[]): Promise<AskedWitnesses> {
  const suspects = suspectsOf(await openStarts(db, steps))
  return askMonitoring && suspects.length > 0 ? await askMonitoring(suspects) : new Map()
}

/** Returns the present evidence that hosts are dead whose VMs a plan starts elsewhere. */
export async function deathsOfPlan(deps: WitnessDeps, steps: readonly PlanStep[]): Promise<JudgedDeath[]> {
  return await readJudgedDeaths(deps.db, steps, await askAbout(deps, steps))
}

/**
 * Returns why these steps may not run, because a host is not known to be dead; null if the steps
 * may run. `taken`: hosts that counted as dead when people decided.
 */
export async function whyNotNow(
  deps: WitnessDeps,
  steps: readonly PlanStep[],
  said: readonly string[],
  taken: readonly string[] = [],
): Promise<ReturnType<typeof whyNotDead>> {
  const deaths = await readDeaths(deps.db, steps, await askAbout(deps, steps), taken)
  return deaths.length === 0 ? null : whyNotDead(deaths, said, Date.parse(await databaseTime(deps.db as never)))
}

/** Refuses a plan before any step begins, if a host is not known to be dead whose VMs it starts. */
export async function requireDead(
  deps: WitnessDeps,
  steps: readonly PlanStep[],
  said: readonly string[],
): Promise<void> {
  const bar = await whyNotNow(deps, steps, said)
  if (bar) throw new EffectRefused('conflict', bar.code, bar.reason, { fields: { hosts: bar.hosts } })
}

/** Lists the hosts that the approvers of this write stated to be off. */
export async function saidWith(
  { db }: Pick<EffectDeps, 'db'>,
  judged: IncidentEvent<'tool_started'> | null,
): Promise<string[]> {
  const approvalId = judged?.metadata.approvalId ?? null
  return approvalId === null ? [] : await hostsSaidOff(db, approvalId)
}
