import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from 'commander'
import { formatApproval } from '../approval-card.ts'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { type ApiApproval, type ApiClient, apiApproval, listAll, readApproval } from '../core.ts'
import { CommandFailed } from '../exit-code.ts'
import { inert } from '../inert.ts'
import { parseSeconds, withTimeout } from '../seconds.ts'
import { streamEvents } from '../stream.ts'
import { print, printJsonLine } from '../terminal.ts'
import { formatMoment } from '../time.ts'

type WatchOptions = ConnectionOptions & { timeout?: number }

export function addWatchCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('watch')
      .description('approvals as they are asked and decided; with an ID until that one is decided')
      .argument('[id]', 'as apr_…; all approvals when absent')
      .option('--timeout <seconds>', 'give up after this long', parseSeconds),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift approvals watch\n  nightshift approvals watch apr_01k… --timeout 600',
    )
    .action(async (id: string | undefined, options: WatchOptions) => {
      const { api } = connect(options)
      await withTimeout(options.timeout, (signal) =>
        id ? waitUntilDecided(api, id, options, signal) : watchAll(api, options, signal),
      )
    })
}

export function addWaitCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('wait')
      .description('wait until an approval is decided: exits with 0 when it was approved, with 6 when not')
      .argument('<id>', 'as apr_…')
      .option('--timeout <seconds>', 'give up after this long', parseSeconds),
  )
    .addHelpText('after', '\nExample:\n  nightshift approvals wait apr_01k… --timeout 600 && echo approved')
    .action(async (id: string, options: WatchOptions) => {
      const { api } = connect(options)
      await withTimeout(options.timeout, (signal) => waitUntilDecided(api, id, options, signal))
    })
}

async function waitUntilDecided(
  api: ApiClient,
  id: string,
  options: WatchOptions,
  signal?: AbortSignal,
): Promise<void> {
  let approval = await readApproval(api, id)
  while (approval.status === 'pending' && !signal?.aborted) {
    await delay(1_000, undefined, { signal })
    approval = await readApproval(api, id)
  }
  if (options.json) printJsonLine(approval)
  else print(`${inert(id)} is ${approval.status}.`)
  if (['denied', 'expired', 'withdrawn'].includes(approval.status)) throw new CommandFailed('denied', '')
}

async function watchAll(api: ApiClient, options: WatchOptions, signal?: AbortSignal): Promise<void> {
  const show = (approval: ApiApproval) =>
    options.json ? printJsonLine(approval) : print(`${formatApproval(approval)}\n`)
  // What is pending already is shown when the stream is open, so that nothing falls between the two.
  const shown = new Set<string>()
  const showPending = async () => {
    for (const approval of await listAll(api, '/api/v1/approvals?status=pending', apiApproval)) {
      if (!shown.has(approval.id)) show(approval)
      shown.add(approval.id)
    }
  }
  await showPending()
  for await (const event of streamEvents(api, { signal, onOpen: () => void showPending().catch(() => undefined) })) {
    if (!event.kind.startsWith('approval_')) continue
    const { approvalId } = event.metadata as { approvalId: string }
    if (event.kind === 'approval_requested' && shown.has(approvalId)) continue
    shown.add(approvalId)
    const approval = await readApproval(api, approvalId)
    if (event.kind === 'approval_requested' || options.json) show(approval)
    else print(`${formatMoment(event.at)}  ${inert(approvalId)} is ${approval.status}: ${inert(event.detail)}\n`)
  }
}
