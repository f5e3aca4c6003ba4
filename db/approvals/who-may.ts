import { sql } from 'kysely'
import { type Decider, mayDecide } from '../../domain/approvers.ts'
import type { DecisionSubject } from '../../domain/decision-right.ts'
import type { WhoMay } from '../../domain/who-may.ts'
import type { Scope } from '../scope.ts'

/**
 * Lists everybody who was known at `asked.at`, by name, with the reason why a person may not
 * decide. Reads the changes that the database recorded (`row_change`), so that a later change does
 * not alter the result. Null for a time before `row_change` begins.
 */
export async function whoMayAt({ db }: Scope, asked: DecisionSubject): Promise<WhoMay['people'] | null> {
  const { rows } = await sql<{ person: Decider | null }>`
    with newest as (
      select distinct on (row_key) op, kept from row_change
      where of_table = 'operator' and at <= ${asked.at} order by row_key, id desc
    )
    select jsonb_build_object(
      'name', kept->'name', 'role', kept->'role', 'maxRisk', kept->'max_risk', 'incidentTypes', kept->'incident_types',
      'rights', coalesce(kept->'rights', '[]'), 'disabled', kept->>'disabled_at' is not null
    ) as person
    from newest where op <> 'delete' order by kept->>'name'`.execute(db)
  if (rows.length === 0) return null
  return rows.flatMap(({ person }) =>
    person ? [{ name: person.name, role: person.role, why: mayDecide(person, asked) }] : [],
  )
}
