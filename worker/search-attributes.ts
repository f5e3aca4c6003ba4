import { type Connection, isGrpcServiceError } from '@temporalio/client'
import proto from '@temporalio/proto'
import { searchAttributeNames } from '../workflows/outcome.ts'

const { INDEXED_VALUE_TYPE_KEYWORD } = proto.temporal.api.enums.v1.IndexedValueType

/**
 * Registers what operators filter investigations by in Temporal's UI; leaves existing ones alone.
 * Answers what was missing.
 */
export async function ensureSearchAttributes(connection: Connection, namespace: string): Promise<string[]> {
  const { missing } = await searchAttributeFaults(connection, namespace)
  if (missing.length === 0) return []
  try {
    await connection.operatorService.addSearchAttributes({
      namespace,
      searchAttributes: Object.fromEntries(missing.map((name) => [name, INDEXED_VALUE_TYPE_KEYWORD])),
    })
    return missing
  } catch (error) {
    if (!isRefused(error)) throw error
    throw new Error(
      `The namespace "${namespace}" lacks the search attributes ${missing.join(', ')}, and Temporal does not let us make them. ` +
        'Make them there with the type Keyword: in Temporal Cloud on the page of the namespace, or with "tcld namespace search-attributes add".',
      { cause: error },
    )
  }
}

/** Our absent search attributes, and those of another type: a run that sets them cannot start. */
export async function searchAttributeFaults(
  connection: Connection,
  namespace: string,
): Promise<{ missing: string[]; ofOtherType: string[] }> {
  try {
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace })
    const types = customAttributes ?? {}
    return {
      missing: searchAttributeNames.filter((name) => !(name in types)),
      ofOtherType: searchAttributeNames.filter((name) => name in types && types[name] !== INDEXED_VALUE_TYPE_KEYWORD),
    }
  } catch (error) {
    if (!isRefused(error)) throw error
    // Temporal Cloud answers no client about it: names are aliases known to the namespace.
    const { config } = await connection.workflowService.describeNamespace({ namespace })
    const aliases = new Set(Object.values(config?.customSearchAttributeAliases ?? {}))
    return { missing: searchAttributeNames.filter((name) => !aliases.has(name)), ofOtherType: [] }
  }
}

/**
 * PERMISSION_DENIED, UNIMPLEMENTED, UNAUTHENTICATED: the namespace let us in, so it is this service
 * that does not.
 */
function isRefused(error: unknown): boolean {
  return isGrpcServiceError(error) && [7, 12, 16].includes(error.code)
}
