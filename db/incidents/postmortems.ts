import { sql } from 'kysely'
import { formatList } from '../../domain/format.ts'
import { type PostmortemEdit, type PostmortemSection, sectionTitles } from '../../domain/postmortem.ts'
import { cleanse } from '../../safety/redact.ts'
import type { Db } from '../connect.ts'
import { recordAudit } from '../log/audit.ts'
import type { Scope } from '../scope.ts'

/** Lists the texts that people wrote in the postmortem of an incident, the oldest version first. */
export async function postmortemEdits({ db }: Scope, incidentId: string): Promise<PostmortemEdit[]> {
  return await db
    .selectFrom('postmortemEdit')
    .innerJoin('operator', 'operator.id', 'postmortemEdit.operatorId')
    .select(['version', 'operator.name as by', 'at', 'sections'])
    .where('incidentId', '=', incidentId)
    .orderBy('version')
    .execute()
}

/**
 * Stores a person's text as the version after the version that the person saw. False, and nothing
 * is stored, if somebody else wrote in the meantime. A single statement decides. The audit log
 * records who wrote which sections.
 */
export async function writePostmortem(
  db: Db,
  incidentId: string,
  edit: { seen: number; sections: PostmortemEdit['sections']; operatorId: string; who: string },
): Promise<boolean> {
  const { seen, sections, operatorId, who } = edit
  const kept = Object.entries(sections).map(([section, text]) => [section, text === null ? null : cleanse(text)])
  return await db.transaction().execute(async (trx) => {
    const { rows } = await sql`
      insert into postmortem_edit (incident_id, version, sections, operator_id)
      select ${incidentId}, ${seen}::int + 1, ${JSON.stringify(Object.fromEntries(kept))}::jsonb, ${operatorId}
      where ${seen}::int = (select coalesce(max(version), 0) from postmortem_edit where incident_id = ${incidentId})
      on conflict do nothing returning version`.execute(trx)
    if (rows.length === 0) return false
    const detail = `Version ${seen + 1}: ${describeEdit(sections)}`
    await recordAudit(trx, { who, what: 'postmortem.edited', subject: incidentId, detail })
    return true
  })
}

/** Formats a person's edit: `wrote Cause and Impact; put the folded text of Summary back`. */
function describeEdit(sections: PostmortemEdit['sections']): string {
  const named = (isWritten: boolean) =>
    Object.entries(sections)
      .filter(([, text]) => (text !== null) === isWritten)
      .map(([section]) => sectionTitles[section as PostmortemSection])
  const [written, put] = [named(true), named(false)]
  return [
    ...(written.length > 0 ? [`wrote ${formatList(written)}`] : []),
    ...(put.length > 0 ? [`restored the text from the log for ${formatList(put)}`] : []),
  ].join('; ')
}
