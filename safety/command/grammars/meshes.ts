import { type Grammar, type Grammars, paths, plain, sameGrammar, spellOptions, verbs } from '../grammar.ts'

const kube = spellOptions({ text: '-n --namespace --context', flag: '-A --all-namespaces' })
const output = spellOptions({ name: '-o --output' })
const istio = 'istioctl, Istio 1.20'
const ofProxies = spellOptions({
  text: '--fqdn --port --direction --subset --type --address --cluster --status --name --revision --node',
  flag: '--short -s --verbose --verbose=false --remote --remote=false',
})

/**
 * Filters only choose among stored flows, so no name is looked up. Without a number or a time the
 * program prints the last 20 flows.
 */
const observed: Grammar = {
  manual: 'hubble observe, 0.12',
  options: spellOptions({
    number: '--last --first',
    text: `--verdict --since --until --namespace -n --to-namespace --from-namespace --pod --to-pod --from-pod --type -t --protocol --label
      -l --to-label --from-label --port --to-port --from-port --ip --to-ip --from-ip --fqdn --to-fqdn --from-fqdn --service --to-service
      --from-service --workload --to-workload --from-workload --identity --to-identity --from-identity --node-name --cluster --http-status
      --http-method --http-path --tcp-flags --traffic-direction --ip-version --trace-id --drop-reason-desc --time-format`,
    name: '-o --output',
    flag: '-f --follow -j --json -4 -6 --print-node-name --numeric --no-color --not --all --print-raw-filters --ip-translation=false',
  }),
  endless: {
    when: ['-f', '--follow'],
    enough: ['--last', '--first', '--since', '--until', '--all'],
    instead: { drop: ['-f', '--follow'], add: ['--last', '20'] },
  },
}

/**
 * Client of the local agent, called cilium-dbg after 1.14. Excluded: `config` with an operand sets;
 * `monitor` never ends.
 */
const cilium: Grammar = verbs(
  'cilium, cilium-dbg, 1.14',
  `status, version, endpoint list|get|health|log|labels, service|identity|node|nodeid|lrp|ip|recorder|prefilter|cgroups list, identity|service|ip|map get,
   map list|events, policy get|selectors, metrics list, encrypt status, fqdn cache list, fqdn names, bgp peers|routes|route-policies, clustermesh|features status,
   bpf lb|ct|nat|policy|tunnel|endpoint|metrics|ipcache|auth|bandwidth|egress|frag|nodeid|vtep|sha|ipmasq|recorder list, bpf policy|ipcache|sha get`,
  {
    ...output,
    ...spellOptions({
      flag: '--verbose --brief --all-addresses --all-clusters --all-controllers --all-health --all-nodes --all-redirects --all --numeric -n --wait',
      wait: '--wait-duration',
    }),
  },
)

/** Clients of meshes and networks in Kubernetes, which show agents and proxies. */
export const meshes: Grammars = {
  istioctl: {
    // Excluded: proxy-config secret, all and bootstrap, which show keys and environments. Analyze
    // and describe only read.
    manual: istio,
    options: { ...kube, ...output },
    commands: {
      ...paths(
        `proxy-status|ps, version, tag list, verify-install, remote-clusters, waypoint list|status,
         ztunnel-config|zc workloads|workload|services|service|policies|policy|connections,
         x|experimental describe pod|po|service|svc, x|experimental authz check, x|experimental proxy-status|ps|version|precheck|metrics, x|experimental injector list`,
        plain(istio, ofProxies),
      ),
      ...sameGrammar('proxy-config pc', {
        manual: istio,
        commands: {
          ...paths(
            'cluster|clusters|c|listener|listeners|l|route|routes|r|endpoint|endpoints|ep|eds|ecds',
            // Refuses JSON and YAML, because they print Envoy filters with all configured texts.
            plain(istio, ofProxies, { refuses: ['^(json|yaml)$'] }),
          ),
          // Excluded: --level sets, and -r resets.
          log: plain(istio, {}, { operands: { first: ['name'] } }),
        },
      }),
      analyze: plain(istio, {}, { operands: {} }),
    },
  },
  linkerd: verbs(
    'linkerd, 2.14',
    'check, version, viz stat|edges|routes|check|list|authz, authz, diagnostics endpoints|proxy-metrics|controller-metrics|policy, multicluster gateways|check',
    {
      ...kube,
      ...spellOptions({ flag: '--proxy --short --client', text: '-t --time-window --to --from' }),
    },
  ),
  ...sameGrammar('cilium cilium-dbg', {
    ...cilium,
    commands: {
      ...cilium.commands,
      config: { manual: 'cilium config, 1.14', options: spellOptions({ flag: '-a --all -r --read-only' }) },
      monitor: {
        manual: 'cilium monitor, 1.14',
        options: spellOptions({
          text: '-t --type',
          number: '--from --to --related-to',
          flag: '-v --verbose -j --json --numeric',
        }),
        endless: { when: 'always', instead: null },
      },
    },
  }),
  'cilium-health': verbs('cilium-health, 1.14', 'status, get', {
    ...output,
    ...spellOptions({ flag: '--probe --succinct --verbose' }),
  }),
  hubble: {
    manual: 'hubble, 0.12',
    options: spellOptions({ host: '--server', flag: '--tls' }),
    commands: {
      ...paths('status, version, list nodes|namespaces', plain('hubble, 0.12')),
      observe: { ...observed, bare: true, commands: { flows: { ...observed, options: {} } } },
    },
  },
  calicoctl: verbs(
    'calicoctl, 3.26',
    `node status, ipam show|check, version, get nodes|node|ippool|ippools|ipPool|bgppeer|bgppeers|bgpPeer|bgpconfiguration|bgpconfigurations|bgpconfig|bgpConfiguration|felixconfiguration|felixconfigurations|felixconfig|workloadendpoint|workloadendpoints|wep|hostendpoint|hostendpoints|hep|networkpolicy|networkpolicies|np|globalnetworkpolicy|globalnetworkpolicies|gnp|globalnetworkset|globalnetworksets|networkset|networksets|profile|profiles|ipreservation|ipreservations|clusterinformation|clusterinfo`,
    {
      ...output,
      ...spellOptions({ flag: '--show-blocks --show-borrowed -A --all-namespaces', text: '-n --namespace' }),
    },
  ),
}
