import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from 'commander'
import { approvalCard } from '../approval-card.ts'
import { type Asking, asking, connected } from '../connection.ts'
import { type AnApproval, anApproval, type Core, listAll, readApproval } from '../core.ts'
import { CommandFailed } from '../exit-code.ts'
import { inert } from '../inert.ts'
import { seconds, within } from '../seconds.ts'
import { liveEvents } from '../stream.ts'
import { data, jsonLine } from '../terminal.ts'
import { moment } from '../time.ts'

type Options = Asking & { timeout?: number }

export function watchApprovals(parent: Command): void {
  asking(
    parent
      .command('watch')
      .description('approvals as they are asked and decided; with an ID until that one is decided')
      .argument('[id]', 'as apr_…; all approvals when absent')
      .option('--timeout <seconds>', 'give up after this long', seconds),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift approvals watch\n  nightshift approvals watch apr_01k… --timeout 600',
    )
    .action(async (id: string | undefined, options: Options) => {
      const { api } = connected(options)
      await within(options.timeout, (signal) =>
        id ? untilDecided(api, id, options, signal) : all(api, options, signal),
      )
    })
}

export function waitForApproval(parent: Command): void {
  asking(
    parent
      .command('wait')
      .description('wait until an approval is decided: exits with 0 when it was approved, with 6 when not')
      .argument('<id>', 'as apr_…')
      .option('--timeout <seconds>', 'give up after this long', seconds),
  )
    .addHelpText('after', '\nExample:\n  nightshift approvals wait apr_01k… --timeout 600 && echo approved')
    .action(async (id: string, options: Options) => {
      const { api } = connected(options)
      await within(options.timeout, (signal) => untilDecided(api, id, options, signal))
    })
}

async function untilDecided(api: Core, id: string, options: Options, signal?: AbortSignal): Promise<void> {
  let approval = await readApproval(api, id)
  while (approval.status === 'pending' && !signal?.aborted) {
    await delay(1_000, undefined, { signal })
    approval = await readApproval(api, id)
  }
  if (options.json) jsonLine(approval)
  else data(`${inert(id)} is ${approval.status}.`)
  if (['denied', 'expired', 'withdrawn'].includes(approval.status)) throw new CommandFailed('denied', '')
}

async function all(api: Core, options: Options, signal?: AbortSignal): Promise<void> {
  const show = (approval: AnApproval) => (options.json ? jsonLine(approval) : data(`${approvalCard(approval)}\n`))
  // What is pending already is shown when the stream is open, so that nothing falls between the two.
  const shown = new Set<string>()
  const showPending = async () => {
    for (const approval of await listAll(api, '/api/v1/approvals?status=pending', anApproval)) {
      if (!shown.has(approval.id)) show(approval)
      shown.add(approval.id)
    }
  }
  await showPending()
  for await (const event of liveEvents(api, { signal, onOpen: () => void showPending().catch(() => undefined) })) {
    if (!event.kind.startsWith('approval_')) continue
    const { approvalId } = event.metadata as { approvalId: string }
    if (event.kind === 'approval_requested' && shown.has(approvalId)) continue
    shown.add(approvalId)
    const approval = await readApproval(api, approvalId)
    if (event.kind === 'approval_requested' || options.json) show(approval)
    else data(`${moment(event.at)}  ${inert(approvalId)} is ${approval.status}: ${inert(event.detail)}\n`)
  }
}
