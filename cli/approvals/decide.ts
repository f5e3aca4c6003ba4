import type { Command } from 'commander'
import { z } from 'zod'
import type { Decision } from '../../domain/approval.ts'
import { type Asking, asking, connected } from '../connection.ts'
import { type Core, readApproval } from '../core.ts'
import { json, note, paint } from '../terminal.ts'
import { command } from '../where.ts'
import { mintToken, toldByStatus } from './decision-token.ts'

type Options = Asking & { reason?: string }

export function approveApproval(parent: Command): void {
  asking(
    parent
      .command('approve')
      .description('let the action run, exactly as shown and once')
      .argument('<id>', 'as apr_…')
      .option('--reason <text>', 'why, for the timeline'),
  )
    .addHelpText('after', '\nExample:\n  nightshift approvals approve apr_01k…')
    .action((id: string, options: Options) => decide(id, 'approve', options))
}

export function denyApproval(parent: Command): void {
  asking(
    parent
      .command('deny')
      .description('forbid the action; the agent reads why and goes on')
      .argument('<id>', 'as apr_…')
      .requiredOption('--reason <text>', 'why; the agent reads it'),
  )
    .addHelpText('after', '\nExample:\n  nightshift approvals deny apr_01k… --reason "host-osl-2 is being replaced"')
    .action((id: string, options: Options, self: Command) => {
      if (options.reason?.trim() === '') self.error('error: a denial needs a reason: the agent reads it')
      return decide(id, 'deny', options)
    })
}

async function decide(id: string, decision: Decision, options: Options): Promise<void> {
  const { api } = connected(options)
  const { token } = await mintToken(api, id)
  const answer = await toldByStatus(api, id, () =>
    api.post(`/api/v1/approvals/${encodeURIComponent(id)}/decision`, {
      decision,
      token,
      reason: options.reason ?? null,
    }),
  )
  const { status } = z.looseObject({ status: z.string() }).parse(answer)
  if (options.json) return json(answer)
  await toldPerson(api, id, decision, status)
}

async function toldPerson(api: Core, id: string, decision: Decision, status: string): Promise<void> {
  const { required, approvals, incidentId } = await readApproval(api, id)
  if (decision === 'approve' && status === 'pending') {
    return note(
      `${paint('yellow', '…')} Your approval of ${id} counts: ${approvals} of ${required}. Another person must approve too.`,
    )
  }
  note(`${paint('green', '✔')} ${id} is ${status}. Follow it with "${command(`incidents watch ${incidentId}`)}".`)
}
