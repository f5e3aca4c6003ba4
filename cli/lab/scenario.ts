import type { Verdict } from '../../lab/oracle.ts'
import type { FaultName } from '../../lab/state.ts'
import { enrolLab } from '../../start/enrol-lab.ts'
import { type AnIncident, core, eventsAfter } from '../core.ts'
import { audience } from '../demo/audience.ts'
import { alertOf } from '../demo/find-incident.ts'
import { type Audience, askOracle, type World } from '../demo/play.ts'
import { CommandFailed } from '../exit-code.ts'
import { inert } from '../inert.ts'
import { oracleVerdict } from '../oracle-verdict.ts'
import { within } from '../seconds.ts'
import { data, json, note, paint } from '../terminal.ts'
import { toldEnding } from '../told-ending.ts'
import { runningHere } from '../where.ts'
import { type Course, courseOf } from './acts.ts'
import { labHere } from './client.ts'
import { type ScenarioName, wrongsOfEnding } from './endings.ts'
import { faults } from './faults.ts'
import { freshTarget } from './fresh-target.ts'
import { withTimes } from './short-times.ts'

/** Scenarios that need an agent on each node. */
const onDevices = new Set<ScenarioName>([
  ...(['runaway_process', 'bad_deploy', 'log_orders'] as const),
  ...(['full_log', 'missing_package', 'port_squatter'] as const),
])

export type ScenarioOptions = { scenario: ScenarioName; target?: string; timeout?: number; json?: boolean }

/**
 * Breaks it, follows its own incident to the end, asks the oracle about the state, and looks how the incident ended. Both decide the exit
 * code: a full disk of a tenant ends well with a person, and wrongly as repaired.
 */
export async function playScenario(options: ScenarioOptions): Promise<void> {
  const { scenario } = options
  const lab = labHere()
  const run = runningHere()
  if (!run?.tokens.admin) throw new CommandFailed('auth', 'The run file has no admin token.')
  const api = core({ url: run.url, token: run.tokens.admin, run })
  if (onDevices.has(scenario)) {
    note('The nodes of the lab enrol as devices of the mesh; the first time this takes some seconds.')
    const enrolled = await enrolLab(run.url, run.tokens.admin, lab)
    note(enrolled === 0 ? 'All were enrolled before.' : `Enrolled ${enrolled} nodes.`)
  }
  const course = courseOf(scenario)
  const target = await targetOf({ api, lab }, options, course)
  for (const fault of course.faults) {
    const healed = await lab.heal(fault, options.target)
    if (healed > 0) note(`Healed ${fault}, which an earlier run left.`)
  }
  const listener = options.json ? silent : audience(api, run)
  const incident = await untilInterrupted((interrupted) =>
    within(options.timeout ?? course.limitSeconds, (timeout) => {
      const signal = AbortSignal.any([interrupted, ...(timeout ? [timeout] : [])])
      return playWith({ api, lab, signal }, course, target, listener)
    }),
  )
  const verdict = await askOracle({ api, lab }, course.oracle, target)
  if (course.isHealed) {
    for (const fault of course.faults) await lab.heal(fault, target)
    listener.remark(`Healed ${target}: it would go on for ever.`)
  }
  const wrongs = wrongsOfEnding(scenario, incident, await eventsAfter(api, incident.id))
  if (options.json) json({ scenario, target, incident, verdict, wrongs })
  else data(ended(incident, verdict, wrongs))
  if (!verdict.healthy || wrongs.length > 0) throw new CommandFailed('unresolved', '')
}

async function playWith(world: World, course: Course, target: string, listener: Audience): Promise<AnIncident> {
  const type = alertOf[course.faults[0] as FaultName] ?? ''
  return await withTimes(world.api, type, course.times ?? {}, listener.remark, () =>
    course.play(world, target, listener),
  )
}

/** Ctrl-C ends the play, and what it changed for itself is put back first. */
async function untilInterrupted<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupted = new AbortController()
  const interrupt = () =>
    interrupted.abort(new CommandFailed('error', 'Stopped. What was broken stays so: nightshift lab heal'))
  process.once('SIGINT', interrupt)
  try {
    return await work(interrupted.signal)
  } finally {
    process.off('SIGINT', interrupt)
  }
}

async function targetOf({ api, lab }: World, { scenario, target }: ScenarioOptions, course: Course): Promise<string> {
  if (target) return target
  if (!course.targets) return faults[scenario as FaultName].example
  const fresh = await freshTarget(api, lab, alertOf[course.faults[0] as FaultName] ?? '', course.targets)
  if (fresh === null) {
    note(
      'Every place of this scenario had an incident today, and an alert has three attempts a day: name one with --target.',
    )
  }
  return fresh ?? (course.targets[0] as string)
}

function ended(incident: AnIncident, verdict: Verdict, wrongs: string[]): string {
  const ending =
    wrongs.length === 0
      ? paint('green', '✔ It ended as it should.')
      : [paint('red', '✖ It did not end as it should.'), ...wrongs.map((wrong) => `  ✖ ${inert(wrong)}`)].join('\n')
  const lines = [`${inert(incident.id)} is ${toldEnding(incident)}.`, ending, oracleVerdict(verdict)]
  return `\n${lines.join('\n').replace(/^/gm, '  ')}`
}

const silent: Audience = { broken() {}, found() {}, unclaimed() {}, event() {}, remark() {} }
