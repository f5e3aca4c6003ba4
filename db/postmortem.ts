import { sql } from 'kysely'
import type { PostmortemEdit } from '../domain/postmortem.ts'
import { cleanse } from '../safety/cleanse.ts'
import type { Db } from './connect.ts'
import type { Scope } from './scope.ts'

/** What people wrote into the postmortem of an incident, the oldest version first. */
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
 * Keeps what a person wrote, as the version after the one that they saw. False where somebody wrote meanwhile, or nobody wrote what they say
 * they saw: then nothing is kept. One statement decides; the log is not touched.
 */
export async function writePostmortem(
  db: Db,
  incidentId: string,
  edit: { seen: number; sections: PostmortemEdit['sections']; operatorId: string },
): Promise<boolean> {
  const { seen, sections, operatorId } = edit
  const kept = Object.entries(sections).map(([section, text]) => [section, text === null ? null : cleanse(text)])
  const { rows } = await sql`
    insert into postmortem_edit (incident_id, version, sections, operator_id)
    select ${incidentId}, ${seen}::int + 1, ${JSON.stringify(Object.fromEntries(kept))}::jsonb, ${operatorId}
    where ${seen}::int = (select coalesce(max(version), 0) from postmortem_edit where incident_id = ${incidentId})
    on conflict do nothing returning version`.execute(db)
  return rows.length > 0
}
