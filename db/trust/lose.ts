import { sql } from 'kysely'
import { systemActor } from '../../domain/event.ts'
import { formatList } from '../../domain/format.ts'
import { manualChangeType } from '../../domain/manual-change.ts'
import { levelAfterLoss, pairName, type TrustLevel, type TrustPair, trustLostType } from '../../domain/trust.ts'
import type { Trx } from '../connect.ts'
import { closeIncident } from '../incidents/close-incident.ts'
import { lockIncident, openedAs, openIncident } from '../incidents/incidents.ts'
import { append } from '../log/append.ts'
import { recordAudit } from '../log/audit.ts'
import type { IncidentRow } from '../tables.ts'
import { lockPair, setTrustOf } from './levels.ts'

/** A write of the agent, with the level of trust when its policy decision was made. */
type WriteAtLevel = { callId: string; tool: string; level: TrustLevel }

type Loss = {
  callIds: readonly string[] | 'all'
  why: string
  /**
   * Set if a person graded the repair as wrong. People are then notified even if the pair already
   * needs approval.
   */
  isSaid?: true
}

/**
 * Removes trust after one repair that was wrong or did not last. From this transaction on the pair
 * needs approval, and people get one incident about Nightshift itself. A pair that already needs
 * approval loses nothing; people are then notified only of a repair that a person graded as wrong,
 * once for each attempt.
 */
export async function loseTrust(trx: Trx, incidentId: string, { callIds, why, isSaid }: Loss): Promise<TrustPair[]> {
  const row = await lockIncident(trx, incidentId)
  if (!row || row.type === manualChangeType || row.type === trustLostType) return []
  const writes = await writesOf(trx, row)
  const affected = writes.filter(({ callId }) => callIds === 'all' || callIds.includes(callId))
  const tools = [...new Set(affected.map((write) => write.tool))]
  const pairs: TrustPair[] = []
  for (const tool of tools) {
    const pair = { type: row.type, tool }
    await lockPair(trx, pair)
    const set = await setTrustOf(trx, pair)
    const acted = affected.some((write) => write.tool === tool && write.level === 'act')
    if (set ? set.level !== 'act' : !acted) continue
    await demote(trx, row, pair, why)
    pairs.push(pair)
  }
  if (pairs.length > 0) await openAboutOurselves(trx, row, whatWasLost(row, pairs, why))
  else if (isSaid && tools.length > 0 && !(await isToldOf(trx, row))) {
    const text = `${formatList(tools)} wrote because of a wrong cause: ${why}`
    await append(trx, row.id, null, {
      kind: 'noted',
      actor: systemActor,
      detail: text,
      metadata: { code: 'called_wrong', text },
    })
    await openAboutOurselves(trx, row, {
      title: `Nightshift: a repair in ${row.type} was graded wrong`,
      text: `${formatList(tools)} in ${row.id}: ${why}. No trust level changed, because these tools already need approval.`,
    })
  }
  return pairs
}

/** Whether people already have an incident about the repairs of this attempt. */
async function isToldOf(trx: Trx, { id, attempt }: IncidentRow): Promise<boolean> {
  const told = await trx
    .selectFrom('incidentEvent')
    .select('seq')
    .where('incidentId', '=', id)
    .where('attempt', '=', attempt)
    .where('kind', '=', 'noted')
    .where(sql<boolean>`metadata->>'code' in ('trust_lost', 'called_wrong')`)
    .limit(1)
    .executeTakeFirst()
  return told !== undefined
}

/**
 * Lists the agent's writes in the attempt, each once. A write from an older version counts as a
 * write of a pair that is trusted to act.
 */
async function writesOf(trx: Trx, { id, attempt }: IncidentRow): Promise<WriteAtLevel[]> {
  const { rows } = await sql<WriteAtLevel>`
    select started.metadata->>'callId' as "callId", started.metadata->>'tool' as tool,
      coalesce(judged.metadata #>> '{basis,policy,trust,level}', 'act') as level
    from incident_event as started
    left join lateral (
      select metadata from incident_event as event
      where event.incident_id = started.incident_id and event.attempt = started.attempt and event.kind = 'call_judged'
        and event.metadata->>'callId' = started.metadata->>'callId' and event.metadata->>'verdict' = 'run'
      order by event.seq desc limit 1) as judged on true
    where started.incident_id = ${id} and started.attempt = ${attempt} and started.kind = 'tool_started'
      and started.metadata->>'effect' = 'write' and started.actor like 'agent:%'
    order by started.seq`.execute(trx)
  return rows
}

async function demote(trx: Trx, row: IncidentRow, pair: TrustPair, why: string): Promise<void> {
  await trx
    .insertInto('trustChange')
    .values({
      incidentType: pair.type,
      tool: pair.tool,
      level: levelAfterLoss,
      cause: 'lost',
      setBy: null,
      incidentId: row.id,
    })
    .execute()
  const text = `${pair.tool} no longer acts without approval in incidents of type ${pair.type}: ${why}`
  await append(trx, row.id, null, {
    kind: 'noted',
    actor: systemActor,
    detail: text,
    metadata: { code: 'trust_lost', text },
  })
  await recordAudit(trx, {
    who: 'nightshift',
    what: 'trust.lost',
    subject: pairName(pair),
    detail: lostWords(row.id, why),
  })
}

/** The text of the audit entry. The command `verify` compares its beginning. */
const lostWords = (incidentId: string, why: string) => `To ${levelAfterLoss} after ${incidentId}: ${why}`

type AboutOurselves = { title: string; text: string }

function whatWasLost(row: IncidentRow, pairs: readonly TrustPair[], why: string): AboutOurselves {
  const tools = formatList(pairs.map(({ tool }) => tool))
  return {
    title: `Nightshift: ${tools} ${pairs.length > 1 ? 'are' : 'is'} no longer trusted in ${row.type}`,
    text: `${tools} in incidents of type ${row.type}, because of ${row.id}: ${why}. Set to ${levelAfterLoss}: each write needs approval.`,
  }
}

/** Opens an incident for people. No run takes it, and no alert belongs to it. */
async function openAboutOurselves(trx: Trx, row: IncidentRow, { title, text }: AboutOurselves): Promise<void> {
  const incident = await openIncident(trx, {
    type: trustLostType,
    severity: 'info',
    severitySource: 'default',
    title,
    resource: null,
    requestedBy: null,
    previousId: null,
  })
  await append(trx, incident.id, null, {
    kind: 'commented',
    actor: systemActor,
    detail: text,
    metadata: { text, confidence: null, action: 'opened', opened: openedAs(incident) },
  })
  await closeIncident(
    trx,
    incident.id,
    null,
    { status: 'escalated', code: 'TRUST_LOST', category: 'does_not_last', reason: `${text} Look at ${row.id}.` },
    { actor: systemActor, stepKey: null },
  )
}

/** Seconds after which a repair counts as lasting, whatever alert fires later. */
const lastedSeconds = 24 * 3600

/**
 * Removes trust because the alert came back after an ending as repaired. The caller holds the
 * incident's lock, and has not reopened the incident yet.
 */
export async function loseRepair(trx: Trx, row: IncidentRow, why: string): Promise<void> {
  if (row.outcome !== 'repaired' || row.closedBy !== 'agent' || row.closedAt === null) return
  const { rows } = await sql<{ recent: boolean }>`
    select nightshift_now() - ${row.closedAt}::timestamptz < make_interval(secs => ${lastedSeconds}) as recent`.execute(
    trx,
  )
  if (rows[0]?.recent) await loseTrust(trx, row.id, { callIds: 'all', why: `its repair did not last. ${why}` })
}
