/**
 * Clients of clouds whose commands are things and then a verb: a thing, a verb and an option that are not named here are asked about. What
 * shows keys, start scripts or environments is not named.
 */
type Rule = {
  things: ReadonlySet<string>
  verbs: ReadonlySet<string>
  /** Whole commands besides. */
  alone: ReadonlySet<string>
  /** Options with and without a value. */
  valued: ReadonlySet<string>
  flags: ReadonlySet<string>
  /** Commands and options that do not go together. */
  but?: (call: string, options: readonly string[]) => string | null
}

const set = (text: string, by: string | RegExp = /\s+/): ReadonlySet<string> =>
  new Set(
    text
      .trim()
      .split(by)
      .map((word) => word.trim()),
  )

const outputs = (options: readonly string[]): string => options.join(' ')

export const openstack: Rule = {
  things: set(
    `server, hypervisor, hypervisor stats, compute service, compute agent, network, network agent, subnet, port, router, floating ip, security group,
     security group rule, volume, volume service, volume type, volume snapshot, volume backup, image, flavor, keypair, endpoint, service, project, domain, region,
     user, role, role assignment, quota, limits, usage, catalog, aggregate, availability zone, host, server event, server migration, server group, loadbalancer,
     loadbalancer listener, loadbalancer pool, loadbalancer member, loadbalancer healthmonitor, loadbalancer status, loadbalancer amphora, coe cluster,
     object, recordset, zone, extension, ip availability, network qos policy, address scope, subnet pool`,
    ',',
  ),
  verbs: set('list show'),
  alone: set('stack list, stack resource list, stack event list, versions show, loadbalancer stats show', ','),
  valued: set(
    '-f --format -c --column --sort --sort-column --limit --status --name --host --project --os-cloud --marker --server --network --max-width --user --image --flavor --ip --ip-address --router --state --service --interface --agent-type --tags',
  ),
  flags: set(
    '--long --all-projects --all --noindent --fit-width --print-empty --deleted --no-name-lookup -n --matching --absolute --names --effective --public --private --ingress --egress --external',
  ),
  // A server carries properties and a start script.
  but: (call, options) =>
    /^(?:server|stack|coe cluster|loadbalancer amphora) show$/.test(call) &&
    (!/(?:^| )(?:-c|--column)/.test(outputs(options)) ||
      /user_data|propert|metadata|config|label/i.test(outputs(options)))
      ? `${call} shows scripts or settings: name columns with -c`
      : null,
}

export const hcloud: Rule = {
  things: set(
    'server, load-balancer, volume, network, floating-ip, primary-ip, firewall, image, iso, location, datacenter, server-type, load-balancer-type, placement-group, ssh-key, certificate',
    ',',
  ),
  verbs: set('list describe metrics'),
  alone: set('version, context list, context active, all list', ','),
  valued: set('-o --output -l --selector -s --sort --type --start --end --status'),
  flags: set('--poll-interval'),
}

export const doctl: Rule = {
  things: set(
    `compute droplet, compute volume, compute load-balancer, compute firewall, compute snapshot, compute image, compute region, compute size, compute domain,
     compute domain records, compute certificate, compute reserved-ip, compute floating-ip, compute cdn, compute action, compute tag, compute ssh-key,
     kubernetes cluster, kubernetes cluster node-pool, databases, account, balance, apps, projects, registry, registry repository, monitoring alert, monitoring uptime, vpcs`,
    ',',
  ),
  verbs: set('list ls get'),
  alone: set('version, account ratelimit, apps logs, registry repository list-v2, registry repository list-tags', ','),
  valued: set('--format -o --output --tail --tag-name --region --type'),
  flags: set('--no-header --no-wait'),
  // As a whole they show passwords, keys and environments; a database shows its address with the password.
  but: (call, options) => {
    const given = options.join(' ')
    if (/^(?:databases|apps|kubernetes cluster) /.test(call) && /(?:^| )(?:-o|--output)/.test(given))
      return `${call} shows passwords in this format`
    const isNarrow = /(?:^| )--format[ =]/.test(given) && !/uri|pass|conn|spec|user/i.test(given)
    return /^(?:databases|apps (?:get|list|ls)|kubernetes cluster get)\b/.test(call) && !isNarrow
      ? `${call} shows passwords or settings: name columns with --format`
      : null
  },
}

/** Why the words do more than look by such a list; null when they only look. */
export function inspectByList(rule: Rule, words: readonly string[]): string | null {
  const said: string[] = []
  const options: string[] = []
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at]!
    if (!word.startsWith('-')) said.push(word)
    else if (rule.flags.has(word)) options.push(word)
    else if (rule.valued.has(word)) {
      const value = words[at + 1] ?? ''
      if (value === '' || value.startsWith('-')) return `${word} lacks a value`
      options.push(word, value)
      at += 1
    } else if (rule.valued.has(word.replace(/=.*$/s, '')) && word.startsWith('--')) options.push(word)
    else return `${word} is not an option that is known to only look`
  }
  const odd = [...said, ...options].find((word) => !/^[\w@=%.,:+*-][\w@=%.,:+*/ -]*$/.test(word))
  if (odd !== undefined) return `${odd} is not a plain word`
  if (said.join(' ') === 'version' || (words.length === 1 && words[0] === '--version')) return null
  for (let length = Math.min(4, said.length); length > 1; length -= 1) {
    const call = said.slice(0, length).join(' ')
    const thing = said.slice(0, length - 1).join(' ')
    if (rule.alone.has(call) || (rule.things.has(thing) && rule.verbs.has(said[length - 1]!)))
      return rule.but?.(call, options) ?? null
  }
  return `${said.slice(0, 3).join(' ')} is not known to only look`
}
