import type { FaultName } from '../../lab/state.ts'
import { enrolLab } from '../../start/enrol-lab.ts'
import { core } from '../core.ts'
import { audience } from '../demo/audience.ts'
import { play } from '../demo/play.ts'
import { CommandFailed } from '../exit-code.ts'
import { inert } from '../inert.ts'
import { oracleVerdict } from '../oracle-verdict.ts'
import { within } from '../seconds.ts'
import { data, json, note } from '../terminal.ts'
import { runningHere } from '../where.ts'
import { word } from '../word.ts'
import { labHere } from './client.ts'
import { faults } from './faults.ts'

/** Scenarios that need an agent on each node. */
const onDevices = new Set<FaultName>([
  ...(['runaway_process', 'bad_deploy', 'log_orders'] as const),
  ...(['full_log', 'missing_package', 'port_squatter'] as const),
])

export type ScenarioOptions = { scenario: FaultName; target?: string; timeout?: number; json?: boolean }

/**
 * Breaks it, follows the incident to its end and asks the oracle. The oracle alone decides the exit code: that a tenant's
 * full disk is handed to a person is a good end.
 */
export async function playScenario(options: ScenarioOptions): Promise<void> {
  const lab = labHere()
  const run = runningHere()
  if (!run?.tokens.admin) throw new CommandFailed('auth', 'The run file has no admin token.')
  const api = core({ url: run.url, token: run.tokens.admin, run })
  const target = options.target ?? faults[options.scenario].example
  if (onDevices.has(options.scenario)) {
    note('The nodes of the lab enrol as devices of the mesh; the first time this takes some seconds.')
    const enrolled = await enrolLab(run.url, run.tokens.admin, lab)
    note(enrolled === 0 ? 'All were enrolled before.' : `Enrolled ${enrolled} nodes.`)
  }
  const silent = { broken() {}, found() {}, unclaimed() {}, event() {} }
  const played = await within(options.timeout, (signal) =>
    play({ api, lab, signal }, options.scenario, target, options.json ? silent : audience(api, run)),
  )
  const { incident, verdict } = played
  if (options.json) json({ scenario: options.scenario, target, incident, verdict })
  else {
    data(`\n  ${inert(incident.id)} is ${word(incident.status)}.`)
    data(oracleVerdict(verdict).replace(/^/gm, '  '))
  }
  if (!verdict.healthy) throw new CommandFailed('unresolved', '')
}
