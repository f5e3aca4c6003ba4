import type { Approval } from '../../domain/approval.ts'
import { labClient } from '../../lab/client.ts'
import type { FaultName } from '../../lab/state.ts'
import type { Run } from '../../start/run-file.ts'
import { type AnApproval, anApproval, type Core, core, listAll } from '../core.ts'
import { inert } from '../inert.ts'
import { oracleVerdict } from '../oracle-verdict.ts'
import { data, paint } from '../terminal.ts'
import { moment } from '../time.ts'
import { toldEnding } from '../told-ending.ts'
import { command } from '../where.ts'
import { audience } from './audience.ts'
import { play, type World } from './play.ts'
import { say } from './say.ts'
import { tellWhatFires } from './still-firing.ts'

/** What is broken, in the order of the show, with what the audience is about to see. */
const scenes: { fault: FaultName; target: string; title: string; text: string }[] = [
  {
    fault: 'replication_lag',
    target: 'db-osl-1',
    title: 'A replica falls behind',
    text: 'Its process is stopped (SIGSTOP), so that it copies nothing any more. The repair is reversible and close to the incident: it runs unasked.',
  },
  {
    fault: 'host_down',
    target: 'host-osl-1',
    title: 'A host dies',
    text: 'Its process is killed together with its VMs. Starting them elsewhere is a high-risk write: a person is asked, and nothing happens before. The host itself stays dead: its alert fires on, and people have it.',
  },
]

/**
 * Breaks things in the lab and tells what Nightshift does about it, up to its end. Stops quietly when the signal is aborted.
 * With approvals pending it states those instead, unless `again`.
 */
export async function demo(run: Run, options: { again: boolean; signal: AbortSignal }): Promise<void> {
  const { signal } = options
  const api = core({ url: run.url, token: run.tokens.admin ?? '', run })
  if (!run.labUrl || !run.labControlToken || !run.tokens.admin) {
    say('There is no lab here, because the environment names another platform or core API: nothing is broken for show.')
    return
  }
  const pending = await listAll(api, '/api/v1/approvals?status=pending', anApproval, 20)
  if (pending.length > 0 && !options.again) return statePending(pending, api)

  const lab = labClient(run.labUrl, run.labControlToken)
  const healed = (await lab.faults()).length > 0 ? await lab.heal() : 0
  if (healed > 0) say(`Healed ${healed} fault(s) that an earlier run left in the lab.`)
  for (const [index, scene] of scenes.entries()) {
    data(`\n${paint('bold', `Scene ${index + 1} of ${scenes.length}: ${scene.title}`)}`)
    say(scene.text)
    const world: World = { api, lab, signal }
    const { incident, verdict } = await play(world, scene.fault, scene.target, audience(api, run))
    data(`\n  ${inert(incident.id)} is ${toldEnding(incident)}.`)
    data(oracleVerdict(verdict).replace(/^/gm, '  '))
    data(`  The whole story:  ${command(`incidents show ${incident.id}`)}`)
    if (signal.aborted) return
  }
  await tellWhatFires(api)
}

function statePending(pending: AnApproval[], api: Core): void {
  say(
    `${pending.length} approval(s) wait for a person, so nothing new is broken ("start --demo" does it all the same):`,
  )
  for (const each of pending) {
    data(`\n  ${inert(each.id)}  ${inert(each.dryRun.summary)}`)
    data(`    until ${moment(each.expiresAt)}; ${each.approvals} of ${each.required} approvals given`)
    data(`    ${command(`approvals show ${(each satisfies Approval).id}`)}`)
  }
  data(`\n  API ${api.url}`)
}
