import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { verifyChain } from '../../mesh/agent/chain.ts'

type AuditedEntry = { n: number; at: string; kind: string; requestId: string | null }

/**
 * Verifies the journal in a copy of an agent's state directory: its chain, and that it still holds
 * the entry that `head.json` names. `byHash` finds the entry behind an `audit_hash` that the
 * control plane has stored: one that is not there was never answered by this device, or its segment
 * has been pruned. Nothing is changed, so an agent may be running.
 */
export function auditJournal(
  state: string,
):
  | { ok: true; entries: number; head: string; first: number; byHash: ReadonlyMap<string, AuditedEntry> }
  | { ok: false; reason: string } {
  const byHash = new Map<string, AuditedEntry>()
  const head = readHead(state)
  if (!head) return { ok: false, reason: 'head.json cannot be read' }
  const verified = verifyChain(join(state, 'journal'), (entry, hash) => {
    const requestId = 'request_id' in entry ? entry.request_id : null
    byHash.set(hash, { n: entry.n, at: entry.at, kind: entry.kind, requestId })
  })
  if (!verified.ok) return verified
  if (head.n > 0 && byHash.get(head.hash)?.n !== head.n) {
    return { ok: false, reason: `entry ${head.n}, which was on disk once, is not in the journal` }
  }
  const { entries, head: last, first } = verified
  return { ok: true, entries, head: last, first, byHash }
}

function readHead(state: string): { n: number; hash: string } | null {
  try {
    return JSON.parse(readFileSync(join(state, 'head.json'), 'utf8')) as { n: number; hash: string }
  } catch {
    return null
  }
}
