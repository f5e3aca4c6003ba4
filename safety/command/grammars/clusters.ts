import { type Grammar, type Grammars, paths, sameGrammar, spellOptions } from '../grammar.ts'

const text = { rest: 'text' } as const
const some = { rest: 'text', min: 1 } as const
const one = (manual: string, flag: string, values = '', operands: Grammar['operands'] = text): Grammar => ({
  manual,
  options: spellOptions({ flag: `${flag} --help`, ...(values ? { text: values } : {}) }),
  operands,
})

/**
 * Kinds of Kubernetes objects that hold neither an environment nor a configuration. Such objects
 * may be shown as a whole.
 */
const wholeKinds =
  '^(no|nodes?|ns|namespaces?|ev|events?|svc|services?|ep|endpoints|endpointslices?|pv|persistentvolumes?|pvc|persistentvolumeclaims?|sc|storageclass(es)?|ing|ingress(es)?|netpol|networkpolic(y|ies)|hpa|horizontalpodautoscalers?|pdb|poddisruptionbudgets?|leases?|quota|resourcequotas?|limits|limitranges?|roles?|rolebindings?|clusterroles?|clusterrolebindings?|crd|customresourcedefinitions?|pc|priorityclass(es)?|apiservices?|csidrivers?|csinodes?|volumeattachments?|co|clusteroperators?|clusterversions?|mcp|machineconfigpools?|ingresscontrollers?|sa|serviceaccounts?|csr|certificatesigningrequests?|(validating|mutating)webhookconfigurations?|validatingadmissionpolic(y|ies)|flowschemas?|prioritylevelconfigurations?|runtimeclass(es)?|ingressclass(es)?|csistoragecapacit(y|ies)|volumesnapshots?|volumesnapshotcontents?|volumesnapshotclass(es)?|cs|componentstatus(es)?|certificaterequests?|prometheusrules?|ciliumnodes?|ciliumendpoints?|cep|ciliumidentit(y|ies)|ciliumnetworkpolic(y|ies)|cnp|ciliumclusterwidenetworkpolic(y|ies)|ccnp|ippools?|ipamblocks?|nodenetworkstates?|nns|machinehealthchecks?|mhc|machineautoscalers?|clusterautoscalers?|infrastructures?(\\.config\\.openshift\\.io)?|networks?\\.config(\\.openshift\\.io)?|dns(es)?\\.config(\\.openshift\\.io)?|schedulers?\\.config(\\.openshift\\.io)?|featuregates?|clustercsidrivers?|operatorgroups?|packagemanifests?|cephblockpools?|cephfilesystems?|egressips?|podnetworkconnectivitychecks?|apirequestcounts?|catalogsources?|catsrc|dns(es)?\\.operator(\\.openshift\\.io)?|ingress(es)?\\.config(\\.openshift\\.io)?|apiservers?|kubeletconfigs?|sriovnetworknodestates?|performanceprofiles?)(/[\\w.-]+)?$'

/** Kinds whose status describes what runs, without its environment. */
const workloads =
  '^(po|pods?|deploy|deployments?|sts|statefulsets?|ds|daemonsets?|rs|replicasets?|rc|replicationcontrollers?|jobs?|cj|cronjobs?)(\\.\\w+)?(/[\\w.-]+)?$'

/** Matches all names of secrets, because a list of kinds may contain one. */
const noSecrets = ['(?<!external)secret(?!stores?\\b)', 'credential', 'token', '^all$']
/**
 * Excluded: --kubeconfig may run a program, -s, --token and --as use other rights, --raw and -f
 * read anything.
 */
const kubectl: Grammar = {
  manual: 'kubectl reference, Kubernetes 1.29',
  options: spellOptions({ flag: '--help', text: '-n --namespace --context --cluster --request-timeout' }),
  commands: {
    'api-resources': one(
      'kubectl api-resources',
      '--namespaced --no-headers --cached',
      '-o --output --api-group --verbs --sort-by',
      {},
    ),
    auth: {
      commands: {
        // Allows --as, which here only asks about another's rights.
        'can-i': one(
          'kubectl auth can-i',
          '--list -A --all-namespaces -q --quiet --no-headers',
          '--subresource --as --as-group',
          {
            rest: 'text',
          },
        ),
        whoami: one('kubectl auth whoami', '', '-o --output', {}),
      },
    },
    'api-versions': one('kubectl api-versions', '', '', {}),
    'cluster-info': one('kubectl cluster-info', '', '', {}),
    describe: {
      ...one('kubectl describe', '-A --all-namespaces --show-events', '-l --selector', some),
      refuses: noSecrets,
      // Refuses other kinds, because a description shows a pod's environment, and all values of an
      // unknown kind.
      only: [{ value: '', first: wholeKinds }],
    },
    events: {
      ...one('kubectl events', '-A -w --all-namespaces --watch --no-headers', '--for --types -o --output', {}),
      endless: { when: ['-w', '--watch'], instead: { drop: ['-w', '--watch'], add: [] } },
    },
    explain: one('kubectl explain', '--recursive', '--api-version', some),
    get: {
      options: spellOptions({
        flag: `-A -w --all-namespaces --watch --watch-only --no-headers --show-kind --show-labels --ignore-not-found --output-watch-events --server-print=false --help -w=false --watch=false
          --watch-only=false --no-headers=true`,
        text: '-l -L --field-selector --label-columns --selector --sort-by --chunk-size --subresource',
        request: '--raw',
        'fields:kubernetes': '-o --output',
      }),
      operands: { ...some, unlessOption: ['--raw'] },
      // Allows kinds of the External Secrets Operator, which point to a secret and hold none.
      refuses: ['(?<!external)secret(?!stores?\\b)', 'credential', 'token', '-file'],
      // Allows a whole object only of kinds that hold neither an environment nor a configuration.
      only: [
        {
          value: '^(json|yaml)$',
          first: wholeKinds,
        },
        // Refuses the status of an unknown kind, which may repeat the values that it was given.
        { value: '^(?!.*range[^}]*conditions).*\\.status\\s*([},]|$)', first: `${workloads}|${wholeKinds}` },
      ],
      endless: {
        when: ['-w', '--watch', '--watch-only'],
        instead: { drop: ['-w', '--watch', '--watch-only'], add: [] },
      },
    },
    logs: {
      options: spellOptions({
        flag: `-f -p --all-containers --follow --ignore-errors --prefix --previous --timestamps --all-containers=true --follow=false
          --previous=true --timestamps=true`,
        text: '-c -l --container --limit-bytes --max-log-requests --selector --since --since-time --tail',
      }),
      operands: text,
      endless: {
        when: ['-f', '--follow'],
        enough: ['--since', '--since-time', '--tail'],
        instead: { drop: ['-f', '--follow'], add: ['--tail=200', '--since=10m'] },
      },
    },
    rollout: {
      commands: {
        // Excluded: a revision, with which it prints the template, and the environment in it.
        history: { ...one('kubectl rollout history', '', '', some), refuses: noSecrets },
        status: {
          manual: 'kubectl rollout status',
          options: spellOptions({
            flag: '-w --watch --watch=false -w=false --help',
            text: '--revision -l --selector',
            wait: '--timeout',
          }),
          operands: some,
          endless: {
            when: 'always',
            unless: ['--timeout', '--watch=false', '-w=false'],
            instead: { drop: ['-w', '--watch'], add: ['--timeout=30s'] },
          },
        },
      },
    },
    top: {
      commands: sameGrammar(
        'no node nodes po pod pods',
        one(
          'kubectl top',
          '-A --all-namespaces --containers --no-headers --sum --show-capacity --use-protocol-buffers',
          '-l --selector --sort-by',
        ),
      ),
    },
    version: one('kubectl version', '--client --short', '-o --output', {}),
    config: {
      commands: sameGrammar(
        'current-context get-clusters get-contexts',
        one('kubectl config', '--no-headers', '-o --output'),
      ),
    },
  },
}

const virsh =
  '--all --inactive --details --reason --title --name --uuid --persistent --transient --table --managed-save --bytes --pretty'

/** Paths of the Proxmox VE API that only read: pve.proxmox.com/pve-docs/api-viewer. */
const cluster =
  'cluster/(?:resources|status|tasks|log|nextid|options|ha/(?:status(?:/(?:current|manager_status))?|resources|groups)|replication|ceph/(?:status|metadata|flags))'
const node =
  '(?:status|version|time|tasks(?:/[^/]+(?:/(?:status|log))?)?|services(?:/[\\w@.-]+(?:/state)?)?|network(?:/[\\w.-]+)?|disks(?:/(?:list|smart|zfs|lvm|lvmthin|directory))?|storage(?:/[\\w-]+(?:/(?:status|content|rrddata))?)?|ceph(?:/(?:status|osd|mon|mgr|mds|fs|pool|log|rules))?|rrddata|syslog|journal|netstat|dns|hosts|replication|hardware(?:/(?:pci|usb))?)'
const guest = '(?:status(?:/current)?|config|pending|snapshot|rrddata|feature|interfaces)'

/** Schedulers of containers and virtual machines. */
export const clusters: Grammars = {
  aws: { manual: 'AWS CLI Command Reference, v2', cloud: 'aws' },
  az: { manual: 'Azure CLI reference', cloud: 'az' },
  gcloud: { manual: 'gcloud CLI reference', cloud: 'gcloud' },
  consul: {
    manual: 'consul(1), 1.17',
    options: spellOptions({ url: '-http-addr' }),
    style: 'word',
    commands: {
      members: { ...one('consul members', '-detailed -wan', '', {}), style: 'word' },
      ...paths(
        `catalog datacenters|nodes|services, intention list|check|match, config list, rtt, peering|namespace|partition list, acl policy|role|auth-method list`,
        {
          ...one('consul(1), 1.17', '-detailed -wan -tags', '-service -kind -node-meta -near -filter -node'),
          style: 'word',
        },
      ),
      monitor: {
        manual: 'consul monitor, 1.17',
        style: 'word',
        options: spellOptions({ name: '-log-level', flag: '-log-json' }),
        endless: { when: 'always', instead: null },
      },
      validate: one('consul validate', '-quiet', '', { first: ['config'], min: 1 }),
      // Shows the names of keys, without their values.
      kv: {
        commands: { get: { ...one('consul kv get', '-keys', ''), style: 'word', requires: ['-keys'] } },
      },
      operator: {
        commands: {
          usage: { commands: sameGrammar('instances', {}) },
          area: { commands: sameGrammar('list', {}) },
          raft: {
            commands: sameGrammar('list-peers', {}),
          },
          autopilot: {
            commands: sameGrammar('state get-config', {}),
          },
        },
      },
      info: one('consul info', '', '', {}),
      version: one('consul version', '', '', {}),
    },
  },
  helm: {
    // Excluded: get, which prints values, and manifests with their secrets.
    manual: 'helm(1), Helm 3.14',
    options: spellOptions({ text: '-n --namespace --kube-context' }),
    commands: {
      ...sameGrammar(
        'list ls',
        one(
          'helm list',
          '-a -A -d -q -r --all --all-namespaces --deployed --failed --pending --short',
          '-f -o --filter --output -l --selector -m --max',
          {},
        ),
      ),
      // Shows names and addresses of the repositories that were added.
      repo: { commands: sameGrammar('list ls', one('helm repo list', '', '-o --output', {})) },
      get: { commands: { metadata: one('helm get metadata, Helm 3.14', '', '--revision -o --output', some) } },
      ...sameGrammar('hist history', one('helm history', '', '--max -o --output', some)),
      status: {
        // Refuses formats other than a table, which print the values with their secrets.
        ...one('helm status', '--show-desc --show-resources', '--revision -o --output', some),
        refuses: ['^(json|yaml)$'],
      },
      version: one('helm version', '--short', '', {}),
      search: {
        commands: { repo: one('helm search repo', '-l --versions --devel', '--version', { rest: 'name' }) },
      },
    },
  },
  ...sameGrammar('minikube kind', {
    manual: 'minikube(1), kind(1)',
    options: spellOptions({ flag: '--version' }),
    commands: sameGrammar('version', {}),
  }),
  k3s: {
    manual: 'k3s(1), k3s 1.29',
    options: spellOptions({ flag: '--version' }),
    commands: { version: {}, kubectl, 'check-config': {} },
  },
  microk8s: {
    manual: 'microk8s(1), MicroK8s 1.29',
    commands: {
      version: {},
      kubectl,
      status: { options: spellOptions({ flag: '--wait-ready', name: '--format --addon -a', wait: '-t --timeout' }) },
    },
  },
  'microk8s.kubectl': { ...kubectl, manual: 'microk8s(1), MicroK8s 1.29' },
  kubectl,
  nomad: {
    manual: 'nomad(1), 1.7',
    options: spellOptions({ url: '-address' }),
    style: 'word',
    commands: {
      ...sameGrammar('status', one('nomad status', '-verbose', '')),
      monitor: {
        manual: 'nomad monitor, 1.7',
        options: spellOptions({ name: '-log-level -node-id -server-id', flag: '-json' }),
        endless: { when: 'always', instead: null },
      },
      node: {
        commands: {
          pool: { commands: sameGrammar('list info nodes', one('nomad node pool, 1.7', '-verbose')) },
          status: { ...one('nomad node status', '-self -stats -short -verbose -allocs -json'), style: 'word' },
        },
      },
      job: {
        commands: sameGrammar('status history allocs deployments', {
          ...one('nomad job status', '-short -verbose'),
          style: 'word',
        }),
      },
      alloc: {
        commands: {
          status: { ...one('nomad alloc status', '-short -verbose -stats'), style: 'word' },
          checks: { ...one('nomad alloc checks', '-verbose'), style: 'word' },
          logs: {
            ...one('nomad alloc logs', '-stderr -stdout -tail -f -job', '-n -c -task'),
            style: 'word',
            endless: { when: ['-f'], enough: ['-n', '-c'], instead: { drop: ['-f'], add: ['-tail', '-n', '200'] } },
          },
        },
      },
      ...paths(
        `version, agent-info, license get, operator raft list-peers, operator autopilot health|get-config, operator scheduler get-config, operator metrics,
         deployment|eval|volume|service|namespace|plugin|quota|sentinel|recommendation|var list, deployment|eval|volume|namespace|quota|plugin status, service info,
         acl policy|role list, scaling policy list`,
        { ...one('nomad(1), 1.7', '-short -verbose', ''), style: 'word' },
      ),
      server: {
        commands: { members: { ...one('nomad server members', '-verbose -detailed'), style: 'word' } },
      },
    },
  },
  ...sameGrammar('pct qm', {
    manual: 'pct(1), qm(1), Proxmox VE 8',
    commands: {
      list: one('pct(1)', '--full', '', {}),
      ...sameGrammar(
        'config listsnapshot pending status',
        one('pct(1), qm(1)', '-verbose --verbose --current', '', { first: ['number'], min: 1 }),
      ),
    },
  }),
  pveam: {
    manual: 'pveam(1)',
    commands: {
      available: one('pveam(1)', '', '--section', {}),
      list: one('pveam(1)', '', '', { first: ['name'], min: 1 }),
    },
  },
  'ha-manager': {
    manual: 'ha-manager(1)',
    commands: sameGrammar('status config groupconfig rules', {
      options: spellOptions({ flag: '-verbose --verbose' }),
    }),
  },
  pvecm: { manual: 'pvecm(1)', commands: sameGrammar('nodes status', {}) },
  pvesh: {
    manual: 'pvesh(1)',
    commands: sameGrammar('get ls', {
      ...one(
        'pvesh(1)',
        '--noborder --noheader --human-readable',
        '--output-format --type --limit --since --until --userfilter --statusfilter --errors --timeframe --cf',
        { first: ['text'], min: 1 },
      ),
      // Allows only these paths, because a GET may change something (scans, consoles) and may show
      // keys.
      only: [
        {
          value: '',
          first: `^/?(?:version|pools|storage|${cluster}|nodes(?:/[\\w.-]+(?:/(?:${node}|(?:qemu|lxc)(?:/\\d+(?:/${guest})?)?))?)?)?/?$`,
        },
      ],
    }),
  },
  pvesm: {
    manual: 'pvesm(1)',
    commands: {
      status: one('pvesm(1)', '', '--storage --content --enabled', {}),
      list: one('pvesm(1)', '', '--vmid --content', { first: ['name'], min: 1 }),
    },
  },
  pveversion: { manual: 'pveversion(1)', options: spellOptions({ flag: '-v --verbose' }) },
  virsh: {
    // Excluded: -c connects to another hypervisor; a command string with a semicolon would be
    // several commands.
    manual: 'virsh(1), libvirt 9.0',
    options: spellOptions({ flag: '-q -r --quiet --readonly --version' }),
    commands: {
      ...sameGrammar(
        `capabilities cpu-stats domblkinfo domblklist domblkerror domfsinfo domid domifaddr domiflist domifstat domblkstat dominfo
        domjobinfo dommemstat domname domstate domstats domuuid list net-dhcp-leases net-info net-list nodecpustats
        nodedev-list nodeinfo nodememstats pool-info pool-list snapshot-list version vcpucount vcpuinfo vol-list vol-info`,
        { ...one('virsh(1)', virsh), refuses: ['^;'] },
      ),
    },
  },
}
