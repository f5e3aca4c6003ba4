import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { isMetricFault } from '../../lab/monitoring-rules.ts'
import type { Scenario } from '../../lab/oracle.ts'
import type { FaultName } from '../../lab/state.ts'
import type { ApiClient } from '../api.ts'
import { getStoredSetting, toSettingPath } from '../config/transfer.ts'
import { CommandFailed } from '../exit-codes.ts'
import { type ApiIncident, readIncident } from '../read-api.ts'
import type { ScenarioName } from './endings.ts'
import { type Audience, breakAndFind, follow, type PlayWorld } from './play.ts'

/** The script of a scenario: the fault, and what a person does during the run. */
export type ScenarioScript = {
  /**
   * The faults of this scenario. They are healed before the scenario, in case an earlier run left
   * them.
   */
  faults: FaultName[]
  /** The scenario that the oracle checks at the end. */
  oracle: Scenario
  /**
   * Settings in seconds that are shortened while the scenario runs. At a real site these times are
   * minutes or hours.
   */
  times?: Record<string, number>
  /**
   * Targets that are used in turn, so that a scenario need not wait until the alert of an earlier
   * run ends.
   */
  targets?: string[]
  /** True if the scenario needs all attempts of a day. */
  countsAttempts?: true
  /** True if the scenario heals the fault at its end, because it would otherwise continue. */
  isHealed?: true
  /** The time limit of a scenario that needs no person. */
  limitSeconds?: number
  play(world: PlayWorld, target: string, audience: Audience): Promise<ApiIncident>
}

const nodes = ['node-web-osl-1a', 'node-web-ams-1a', 'node-web-osl-1b', 'node-web-ams-1b']
const isHealed = true
const limitSeconds = 600
const hosts = ['host-osl-1', 'host-ams-1', 'host-osl-2', 'host-ams-3']

export function getScript(scenario: ScenarioName): ScenarioScript {
  return scripts[scenario] ?? createScript(scenario as FaultName)
}

const scripts: Partial<Record<ScenarioName, ScenarioScript>> = {
  relapse: {
    ...createScript('relapse', ({ status }) => status === 'escalated'),
    targets: nodes,
    countsAttempts: true,
    isHealed,
    limitSeconds,
  },
  unended_alert: {
    ...createScript('unended_alert', ({ status }) => status === 'escalated'),
    times: { 'alert.settle': 10, 'alert.settle_max': 150 },
    targets: nodes,
    countsAttempts: true,
    isHealed,
    limitSeconds,
  },
  false_alarm: { ...createScript('false_alarm'), isHealed },
  host_lost: { ...createScript('host_lost'), targets: hosts },
  backup_notice: {
    faults: ['backup_notice'],
    oracle: 'backup_notice',
    targets: nodes,
    countsAttempts: true,
    isHealed,
    limitSeconds,
    play: playBackupNotice,
  },
  after_escalated: {
    faults: ['disk_pressure_tenant', 'disk_pressure'],
    oracle: 'disk_pressure',
    targets: nodes,
    countsAttempts: true,
    isHealed,
    limitSeconds,
    play: playAfterEscalated,
  },
}

function createScript(fault: FaultName, isOver?: (incident: ApiIncident) => boolean): ScenarioScript {
  return {
    faults: [fault],
    oracle: fault,
    // Uses several targets: a rule looks back over some seconds, so the alert of an earlier run of
    // the scenario may still fire.
    ...(isMetricFault(fault) && { targets: nodes }),
    play: async (world, target, audience) =>
      await follow(world, await breakAndFind(world, fault, target, audience), audience, isOver),
  }
}

const tenMinutesMs = 600_000

/**
 * Runs a scenario with a backup notice, which is not a fault. The agent hands the incident to a
 * person. After the person marked the alert as expected, the next notice closes without a run.
 */
async function playBackupNotice(world: PlayWorld, target: string, audience: Audience): Promise<ApiIncident> {
  const { api } = world
  const broken = await breakAndFind(world, 'backup_notice', target, audience)
  const first = await follow(world, broken, audience)
  if (first.category !== 'no_fault_found') return first
  await api.post(`/api/v1/incidents/${first.id}/expected`, {
    subject: 'alert',
    until: new Date(Date.now() + tenMinutesMs).toISOString(),
    reason: 'the nightly backup of the lab',
  })
  audience.remark('Marked as expected for ten minutes, as a person would. The next backup should end without a run.')
  const marked = await readIncident(api, first.id)
  return await follow(
    world,
    { ...broken, afterSeq: marked.events },
    // Waits for the next backup without starting anything.
    { ...audience, unclaimed: () => undefined },
    ({ outcome, reopened }) => outcome !== 'expected' || reopened > marked.reopened,
  )
}

/**
 * Runs a scenario with a full disk that only a person can free, and then with a full disk that the
 * agent can repair. The second alert must be investigated again.
 */
async function playAfterEscalated(world: PlayWorld, target: string, audience: Audience): Promise<ApiIncident> {
  const { api, lab, signal } = world
  const first = await follow(world, await breakAndFind(world, 'disk_pressure_tenant', target, audience), audience)
  if (first.status !== 'escalated') return first
  await lab.heal('disk_pressure_tenant', target)
  audience.remark('The tenant has freed space, as a person asked. The alert ends.')
  while ((await readIncident(api, first.id)).alerts.firing > 0) await delay(300, undefined, { signal })
  const broken = await breakAndFind(world, 'disk_pressure', target, audience)
  if (broken.incidentId !== first.id) {
    throw new CommandFailed(
      'unresolved',
      `${broken.incidentId} is a new incident: the alert should have reopened ${first.id}.`,
    )
  }
  return await follow(world, broken, audience)
}

const effectiveValues = z.looseObject({ items: z.array(z.looseObject({ name: z.string(), value: z.unknown() })) })

/**
 * Runs `work` with other settings for one incident type, and restores the old values afterwards,
 * even if `work` fails. `remark` gets a sentence about both changes.
 */
export async function withShortTimes<T>(
  api: ApiClient,
  type: string,
  times: Record<string, number>,
  remark: (text: string) => void,
  work: () => Promise<T>,
): Promise<T> {
  const names = Object.keys(times)
  if (names.length === 0) return await work()
  const before = await readValuesInForce(api, type, names)
  await writeValues(api, type, times, 'a scenario of the lab')
  remark(`For this scenario: ${describeValues(type, times)}.`)
  try {
    return await work()
  } finally {
    await writeValues(api, type, before, 'the scenario of the lab is over')
    remark(`Settings as before: ${describeValues(type, before)}.`)
  }
}

async function readValuesInForce(api: ApiClient, type: string, names: string[]): Promise<Record<string, number>> {
  const { items } = effectiveValues.parse(await api.get(`/api/v1/config/effective?type=${type}`))
  return Object.fromEntries(names.map((name) => [name, Number(items.find((item) => item.name === name)?.value)]))
}

async function writeValues(api: ApiClient, type: string, times: Record<string, number>, reason: string): Promise<void> {
  for (const [name, value] of Object.entries(times)) {
    const key = `${name}.${type}`
    const version = (await getStoredSetting(api, key))?.version ?? 0
    await api.put(toSettingPath(key), { value: String(value), reason }, { 'if-match': `"${version}"` })
  }
}

function describeValues(type: string, times: Record<string, number>): string {
  return Object.entries(times)
    .map(([name, value]) => `${name}.${type} is ${value} s`)
    .join(', ')
}
