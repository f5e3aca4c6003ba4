import { type Connection, isGrpcServiceError } from '@temporalio/client'
import proto from '@temporalio/proto'
import { searchAttributeNames } from '../workflows/outcome.ts'

const { INDEXED_VALUE_TYPE_KEYWORD } = proto.temporal.api.enums.v1.IndexedValueType

/**
 * Registers the attributes by which operators filter investigations in Temporal's UI, without
 * changing existing attributes. Returns the attributes that were missing.
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
      `The namespace "${namespace}" lacks the search attributes ${missing.join(', ')}, and Temporal does not allow Nightshift to add them. ` +
        'Add these search attributes with the type Keyword: in Temporal Cloud on the page of the namespace, or with "tcld namespace search-attributes add".',
      { cause: error },
    )
  }
}

/**
 * Lists the search attributes that are missing or have a wrong type. A run that sets one of these
 * cannot start.
 */
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
    // Reads aliases, because Temporal Cloud lists no search attributes for clients. Temporal Cloud
    // knows the attributes' names as aliases of the namespace.
    const { config } = await connection.workflowService.describeNamespace({ namespace })
    const aliases = new Set(Object.values(config?.customSearchAttributeAliases ?? {}))
    return { missing: searchAttributeNames.filter((name) => !aliases.has(name)), ofOtherType: [] }
  }
}

/**
 * Whether only this service of Temporal refuses the request (PERMISSION_DENIED, UNIMPLEMENTED or
 * UNAUTHENTICATED); the namespace accepted a request before.
 */
function isRefused(error: unknown): boolean {
  return isGrpcServiceError(error) && [7, 12, 16].includes(error.code)
}
