/** Reads settings of clients that say who connects and to what: why a read must not obey them, or null. */

/**
 * A kubeconfig as YAML has been read. A program for credentials, a file whose content is sent as a token, and a proxy are more than
 * settings; certificates are only used to connect.
 */
export function oddKubeconfig(config: unknown): string | null {
  if (config === null || config === undefined) return null
  if (typeof config !== 'object') return 'it is no kubeconfig'
  return oddKey(config, new Set(['exec', 'auth-provider', 'tokenfile', 'proxy-url']))
}

function oddKey(value: unknown, odd: ReadonlySet<string>): string | null {
  if (value === null || typeof value !== 'object') return null
  for (const [key, inner] of Object.entries(value)) {
    if (!Array.isArray(value) && odd.has(key.toLowerCase())) return key
    const found = oddKey(inner, odd)
    if (found !== null) return found
  }
  return null
}

/** Keys of `~/.docker/config.json` that change neither where the client goes nor what it starts when it looks. */
const dockerKeys = new Set(
  (
    'auths credsStore credHelpers HttpHeaders psFormat imagesFormat networksFormat volumesFormat statsFormat servicesFormat tasksFormat ' +
    'nodesFormat serviceInspectFormat secretFormat configFormat pluginsFormat detachKeys experimental debug'
  ).split(' '),
)

export function oddDockerSettings(settings: unknown): string | null {
  if (settings === null || typeof settings !== 'object' || Array.isArray(settings)) return 'it is no object'
  for (const [key, value] of Object.entries(settings)) {
    if (key === 'currentContext' && (value === '' || value === 'default')) continue
    if (!dockerKeys.has(key)) return key
  }
  return null
}

/**
 * The lines of a file of `key = value` in sections. A prefix of a key may mean the key, so what is not written in full is not known. A host is
 * this machine.
 */
export function oddSetting(text: string, keys: readonly string[]): string | null {
  for (const line of text.split(/\r\n|[\r\n]/).map((line) => line.trim())) {
    if (line === '' || /^[#;]/.test(line) || /^\[[\w .:@/-]+\]$/.test(line)) continue
    const [name = '', value = ''] = line.split(/=(.*)/s).map((part) => part.trim())
    const key = name.toLowerCase().replaceAll('-', '_')
    const isHere = key === 'host' && /^["']?(?:localhost|127\.0\.0\.1|::1)["']?$/.test(value)
    if (!keys.includes(key) && !isHere) return name
  }
  return null
}
