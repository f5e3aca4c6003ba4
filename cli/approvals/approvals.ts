import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { approvalStatus } from '../../domain/approval.ts'
import { formatSpan } from '../../domain/format.ts'
import { pathOfAttachment } from '../../domain/format-approval.ts'
import { standingGrant } from '../../domain/grant.ts'
import type { ApiClient } from '../api.ts'
import { type CliCommand, type ConnectionOptions, commandLine } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { type ApiApproval, apiApproval, listAll, readApproval } from '../read-api.ts'
import { streamEvents } from '../stream.ts'
import { formatMoment, paintState, printList, shortenIds } from '../ui/table.ts'
import {
  inert,
  parseOneOf,
  parseSeconds,
  parseWholeNumber,
  print,
  printJson,
  printJsonLine,
  printNote,
  withTimeout,
} from '../ui/terminal.ts'
import { formatApproval } from './card.ts'
import { addApproveCommand, addDenyCommand, addTokenCommand, runDecisionStep } from './decide.ts'

export function addApprovalsCommand(program: CliCommand): void {
  const parent = program
    .command('approvals')
    .description('actions that the agent asks a person to approve')
    .addHelpText('after', '\nExample:\n  nightshift approvals list\n  nightshift approvals approve apr_01k…')
  addListCommand(parent)
  addShowCommand(parent)
  addApproveCommand(parent)
  addDenyCommand(parent)
  addExtendCommand(parent)
  addTokenCommand(parent)
  addWatchCommand(parent)
  addWaitCommand(parent)
  addGrantsCommand(parent)
  addRevokeCommand(parent)
}

type ListOptions = ConnectionOptions & { status: string; limit: number }

function addListCommand(parent: CliCommand): void {
  const statuses = [...approvalStatus.options, 'all']
  parent
    .command('list')
    .description('actions that wait for a decision, or are decided')
    .option('--status <status>', `one of ${statuses.join(', ')}`, parseOneOf(statuses), 'pending')
    .option('--limit <n>', 'how many at most', parseWholeNumber, 25)
    .connected('\nExample:\n  nightshift approvals list\n  nightshift approvals list --status all --json')
    .web(() => '/approvals')
    .calls(async (api, options: ListOptions) => {
      const query = options.status === 'all' ? '' : `?${new URLSearchParams({ status: options.status })}`
      const approvals = await listAll(api, `/api/v1/approvals${query}`, apiApproval, options.limit)
      const nothing = options.status === 'pending' ? 'Nothing waits for a decision.' : 'None.'
      const shorten = shortenIds(approvals.map(({ id }) => id))
      printList(options, approvals, nothing, {
        ID: (each) => shorten(each.id),
        STATUS: (each) => paintState(each.status),
        RISK: (each) => paintState(each.risk),
        EXPIRES: (each) =>
          each.status === 'pending' ? `in ${formatSpan(Date.parse(each.expiresAt) - Date.now())}` : '',
        ACTION: (each) => inert(`${each.tool}: ${each.dryRun.summary}`),
      })
    })
}

function addShowCommand(parent: CliCommand): void {
  parent
    .command('show')
    .description('what the agent wants to do, why, and what would happen')
    .argument('<id>', 'the approval, such as apr_…')
    .connected()
    .web((id) => `/approvals/${id}`)
    .option('--attachments', 'also print the texts of its dry run')
    .addHelpText('after', '\nExample:\n  nightshift approvals show apr_01k…')
    .calls(async (api, id: string, options: ConnectionOptions & { attachments?: boolean }) => {
      const approval = await readApproval(api, id)
      if (options.json) return printJson(approval)
      print(formatApproval(approval))
      if (options.attachments) await printTexts(api, approval)
      if (approval.status === 'pending') {
        printNote(
          `\nDecide: ${commandLine(`approvals approve ${id}`)}\n        ${commandLine(`approvals deny ${id} --reason "…"`)}`,
        )
      }
    })
}

/** Prints the texts that are attached to the dry run, line by line. */
async function printTexts(api: ApiClient, { id, dryRun }: ApiApproval): Promise<void> {
  for (const each of dryRun.attachments ?? []) {
    if (each.kind !== 'text') continue
    const response = await api.open(pathOfAttachment(id, each), { signal: AbortSignal.timeout(30_000) })
    print(`\n${inert(each.name)}:\n${inert(await response.text(), { lines: true })}`)
  }
}

const extendAnswer = z.looseObject({ expiresAt: z.string() })

function addExtendCommand(parent: CliCommand): void {
  parent
    .command('extend')
    .description('give an approval 15 more minutes, at most until four hours after the request')
    .argument('<id>', 'the approval, such as apr_…')
    .connected('\nExample:\n  nightshift approvals extend apr_01k…')
    .calls(async (api, id: string, options: ConnectionOptions) => {
      const answer = await runDecisionStep(api, id, async () =>
        extendAnswer.parse(await api.post(`/api/v1/approvals/${encodeURIComponent(id)}/extend`)),
      )
      if (options.json) return printJson(answer)
      print(`${id} can be decided until ${formatMoment(answer.expiresAt)}.`)
    })
}

type WatchOptions = ConnectionOptions & { timeout?: number }

function addWatchCommand(parent: CliCommand): void {
  parent
    .command('watch')
    .description('approvals as they are requested and decided; with an ID, until that approval is decided')
    .argument('[id]', 'such as apr_…; default: all approvals')
    .option('--timeout <seconds>', 'give up after this long', parseSeconds)
    .connected('\nExample:\n  nightshift approvals watch\n  nightshift approvals watch apr_01k… --timeout 600')
    .calls(async (api, id: string | undefined, options: WatchOptions) => {
      await withTimeout(options.timeout, (signal) =>
        id ? waitUntilDecided(api, id, options, signal) : watchAll(api, options, signal),
      )
    })
}

function addWaitCommand(parent: CliCommand): void {
  parent
    .command('wait')
    .description('wait until an approval is decided: exits with 0 when it was approved, else with 6')
    .argument('<id>', 'the approval, such as apr_…')
    .option('--timeout <seconds>', 'give up after this long', parseSeconds)
    .connected('\nExample:\n  nightshift approvals wait apr_01k… --timeout 600 && echo approved')
    .calls(async (api, id: string, options: WatchOptions) => {
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
  // Lists the pending approvals at each opening of the stream, which may have missed some.
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

const grantsAnswer = z.looseObject({ items: z.array(z.looseObject(standingGrant.shape)) })

function addGrantsCommand(parent: CliCommand): void {
  parent
    .command('grants')
    .description('standing grants: what may run again without asking, how often, and until when')
    .connected('\nExample:\n  nightshift approvals grants\n  nightshift approvals revoke grt_01k…')
    .calls(async (api, options: ConnectionOptions) => {
      const { items } = grantsAnswer.parse(await api.get('/api/v1/grants'))
      printList(options, items, 'Nothing was granted.', {
        GRANT: (each) => inert(each.id),
        TOOL: (each) => inert(each.tool),
        LEFT: (each) => `${each.usesLeft} of ${each.uses}`,
        UNTIL: (each) => (each.revokedAt ? 'revoked' : formatMoment(each.expiresAt)),
        FOR: (each) => inert(`${each.targets.map(({ kind, id }) => `${kind} ${id}`).join(', ')}, by ${each.grantedBy}`),
      })
    })
}

function addRevokeCommand(parent: CliCommand): void {
  parent
    .command('revoke')
    .description('revoke a standing grant at once')
    .argument('<id>', 'the grant, such as grt_…')
    .connected('\nExample:\n  nightshift approvals revoke grt_01k…')
    .calls(async (api, id: string, options: ConnectionOptions) => {
      const ended = await api.post(`/api/v1/grants/${encodeURIComponent(id)}/revoke`)
      if (options.json) return printJson(ended)
      printNote(`${inert(id)} is revoked: the action needs an approval again.`)
    })
}
