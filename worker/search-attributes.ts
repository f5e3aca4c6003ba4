import type { Connection } from '@temporalio/client'
import proto from '@temporalio/proto'

const { INDEXED_VALUE_TYPE_KEYWORD } = proto.temporal.api.enums.v1.IndexedValueType
const names = ['IncidentType', 'Severity', 'Target', 'Role', 'Status']

/** Registers what operators filter investigations by in Temporal's own UI; what is there already is left alone. */
export async function ensureSearchAttributes(connection: Connection, namespace: string): Promise<void> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace })
  const missing = names.filter((name) => !(name in (customAttributes ?? {})))
  if (missing.length === 0) return
  await connection.operatorService.addSearchAttributes({
    namespace,
    searchAttributes: Object.fromEntries(missing.map((name) => [name, INDEXED_VALUE_TYPE_KEYWORD])),
  })
}
