import { z } from 'zod'
import { auditChain, difference, type Findings, verifiedPage } from '../domain/chain.ts'
import { addFindings, formatCounts, formatUntold, noFindings } from '../domain/findings.ts'
import type { ApiClient } from './api.ts'
import { type CliCommand, type ConnectionOptions, connect } from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { inert, paint, print, printJson, printNote } from './ui/terminal.ts'

const page = verifiedPage.extend({ differences: z.array(difference.loose()) }).loose()
const chain = auditChain.loose()

type Options = ConnectionOptions & { all?: boolean; head?: string }

type Verified = Findings & {
  incidents: number
  events: number
  audit: z.infer<typeof chain>
}

/** Milliseconds between two progress reports of long work on stderr. */
const progressEveryMs = 2_000

/**
 * Number of incidents per request: few, so that the API responds in time even if their logs are
 * long.
 */
const pageSize = 20

export function addVerifyCommand(root: CliCommand): void {
  root
    .command('verify')
    .description('compare the stored data with the log and the audit, and check their hash chains')
    .option(
      '--all',
      'every incident with its approvals, votes, alerts and effects; people, tokens, grants, sources, settings; and the audit',
    )
    .option('--head <hash>', 'an earlier hash of the audit, which must still be in the chain')
    .connected(
      '\nExample:\n  nightshift verify --all\n  nightshift verify --all --head 9f86d081… --json\n\nOne incident alone: nightshift incidents verify ID',
    )
    .action(async ({ all, head, ...options }: Options) => {
      if (!all) throw new CommandFailed('usage', 'Give --all, or verify one incident: nightshift incidents verify ID')
      const { api } = connect(options)
      const verified = { ...(await verifyIncidents(api)), audit: await verifyAudit(api, head) }
      const ok = verified.differences.length === 0 && verified.audit.ok
      if (options.json) printJson({ ok, ...verified })
      else print(formatReport(verified, head))
      if (!ok) throw new CommandFailed('error', '')
    })
}

async function verifyIncidents(api: ApiClient): Promise<Omit<Verified, 'audit'>> {
  const verified: Omit<Verified, 'audit'> = { incidents: 0, events: 0, ...noFindings() }
  let reportedAt = Date.now()
  let cursor: string | null = null
  do {
    const query = new URLSearchParams({ limit: String(pageSize), ...(cursor ? { cursor } : {}) })
    const answer: z.infer<typeof page> = page.parse(await api.get(`/api/v1/verify?${query}`))
    verified.incidents += answer.incidents
    verified.events += answer.events
    addFindings(verified, answer)
    cursor = answer.nextCursor
    if (cursor && Date.now() - reportedAt > progressEveryMs) {
      printNote(
        `${verified.incidents} incidents, ${verified.events} rows so far: ${verified.differences.length} differences.`,
      )
      reportedAt = Date.now()
    }
  } while (cursor)
  return verified
}

async function verifyAudit(api: ApiClient, head: string | undefined): Promise<z.infer<typeof chain>> {
  const query = head ? `?${new URLSearchParams({ head })}` : ''
  return chain.parse(await api.get(`/api/v1/audit/verify${query}`))
}

function formatReport(verified: Verified, head: string | undefined): string {
  const { incidents, events, differences, checked, audit } = verified
  const lines =
    differences.length === 0
      ? [
          `${paint('green', '✔')} ${incidents} incidents agree with their ${events} rows. Everything else agrees with the log and the audit.`,
        ]
      : [
          `${paint('red', '✖')} ${differences.length} differences in ${incidents} incidents with ${events} rows:`,
          ...differences.map(({ subject, what }) => `  ${inert(subject)}: ${inert(what)}`),
        ]
  lines.push(`  Checked: ${inert(formatCounts(checked))}.`)
  const untold = formatUntold(verified)
  if (untold) lines.push(`  ${inert(untold)}`)
  if (audit.problem) {
    lines.push(
      `${paint('red', '✖')} The chain of the audit does NOT hold at row ${audit.problem.seq}: ${inert(audit.problem.what)}`,
    )
  } else {
    lines.push(
      `${paint('green', '✔')} The chain of the audit holds: ${audit.rows} rows.`,
      `  head ${inert(audit.headHash)}`,
    )
    if (head) lines.push('  Your hash is in the chain, so nobody removed or rewrote a row up to this hash.')
  }
  return lines.join('\n')
}
