import type { PersonRole } from '../domain/operator.ts'
import type { Db } from './connect.ts'

export type OperatorRow = { id: string; name: string; role: PersonRole; createdAt: string }

export async function operatorById(db: Db, id: string): Promise<OperatorRow | null> {
  return (await db.selectFrom('operator').selectAll().where('id', '=', id).executeTakeFirst()) ?? null
}

export async function operatorByName(db: Db, name: string): Promise<OperatorRow | null> {
  return (await db.selectFrom('operator').selectAll().where('name', '=', name).executeTakeFirst()) ?? null
}
