import { type Grammar, type Grammars, paths, plain, sameGrammar, spellOptions, verbs } from '../grammar.ts'
import { clusters } from './clusters.ts'
import { containers } from './containers.ts'

const kube = spellOptions({ text: '-n --namespace --context', flag: '-A --all-namespaces' })
const output = spellOptions({ name: '-o --output' })
const whoCan: Grammar = {
  manual: 'oc policy who-can, 4.14',
  options: spellOptions({ flag: '-A --all-namespaces', name: '-o --output' }),
  operands: { rest: 'name', min: 2 },
}

/** Deployment tools for Kubernetes, its meshes and guards, and its other clients. */
export const deployers: Grammars = {
  argocd: {
    // Excluded: --server connects to another server, --local and --refresh make the server work;
    // manifests, differences and parameters hold values.
    manual: 'argocd, Argo CD 2.9',
    options: spellOptions({ name: '-o --output -p --project', text: '-l --selector', flag: '--client' }),
    commands: {
      // Refuses json and yaml, because a whole application shows the values of its deployment.
      ...paths(
        'app list|get|history|resources, cluster list, proj list|get, repo list, appset list, account list|get-user-info|can-i, gpg list, cert list, version',
        plain('argocd, Argo CD 2.9', spellOptions({ flag: '--show-operation --orphaned' }), {
          refuses: ['^(json|yaml)$'],
        }),
      ),
    },
  },
  flux: {
    manual: 'flux, Flux 2.2',
    options: { ...kube, ...output },
    commands: {
      ...paths(
        `get all|kustomizations|kustomization|ks|helmreleases|helmrelease|hr|alerts|receivers|alert-providers, get sources all|git|helm|oci|chart|bucket,
         get images all|policy|repository, check, version, stats, events, tree kustomization|ks, trace`,
        plain(
          'flux, Flux 2.2',
          spellOptions({
            text: '--status-selector --kind --api-version --since --for -l --label-selector',
            flag: '-w --watch --no-header --pre --client --show-source --types=Warning',
          }),
          { endless: { when: ['-w', '--watch'], instead: { drop: ['-w', '--watch'], add: [] } } },
        ),
      ),
      logs: plain(
        'flux, Flux 2.2',
        spellOptions({
          text: '--level --kind --name --since --since-time --flux-namespace',
          number: '--tail',
          flag: '-f --follow',
        }),
        { endless: { when: ['-f', '--follow'], instead: { drop: ['-f', '--follow'], add: [] } } },
      ),
    },
  },
  velero: {
    manual: 'velero, 1.12',
    options: { ...kube, ...output, ...spellOptions({ flag: '--details', text: '-l --selector' }) },
    commands: paths(
      `backup|schedule|restore get|describe, backup|restore logs, backup-location|snapshot-location|plugin|repo get,
       get backups|backup|restores|restore|schedules|schedule|backup-locations|snapshot-locations, version`,
      plain('velero, 1.12'),
    ),
  },
  cmctl: verbs('cmctl, cert-manager 1.13', 'status certificate, check api, version', kube),
  tkn: verbs(
    'tkn, Tekton CLI 0.33',
    'pipelinerun|taskrun|pipeline|task|pr|tr|p|t list|ls|describe|desc, pipelinerun|taskrun|pr|tr logs, version',
    {
      ...kube,
      ...spellOptions({ number: '--limit', flag: '-L --last -a --all -t --timestamps' }),
    },
  ),
  stern: {
    ...plain('stern, 1.28', {
      ...kube,
      ...spellOptions({
        text: '--since -c --container -l --selector',
        number: '--tail',
        flag: '--no-follow --timestamps',
      }),
    }),
    requires: ['--no-follow'],
  },
  talosctl: {
    manual: 'talosctl, Talos 1.6',
    options: spellOptions({
      host: '-n --nodes -e --endpoints',
      name: '-o --output',
      text: '--wait-timeout',
      number: '--tail',
    }),
    commands: {
      ...paths(
        'version, dmesg, health, disks, stats, processes, memory, mounts, containers, netstat, etcd members|status, time',
        plain('talosctl, Talos 1.6'),
      ),
      // Excluded: arguments after a service's name, which may restart the service.
      ...sameGrammar('service services', { operands: { first: ['name'] } }),
      get: plain(
        'talosctl, Talos 1.6',
        {},
        {
          only: [
            {
              value: '',
              first:
                '^(members|nodename|addresses|routes|links|disks|services|machinestatus|etcdmembers|nodestatus|mounts|timestatus)$',
            },
          ],
          operands: { rest: 'name', min: 1 },
        },
      ),
      logs: plain('talosctl, Talos 1.6', {}, { operands: { first: ['name'], min: 1 } }),
    },
  },
  oc: {
    ...clusters.kubectl!,
    manual: 'oc, OpenShift CLI 4.14',
    commands: {
      ...clusters.kubectl!.commands,
      ...paths('status, projects, get-clusters', plain('oc, 4.14')),
      project: { options: spellOptions({ flag: '-q --short' }) },
      whoami: { options: spellOptions({ flag: '-c --show-console --show-context --show-server' }) },
      policy: { commands: { 'who-can': whoCan } },
      // Excluded: descriptions of sign-in clients, templates and builds, which show their secrets.
      describe: {
        ...clusters.kubectl!.commands!.describe!,
        refuses: [...clusters.kubectl!.commands!.describe!.refuses!, 'oauth', 'template', 'build', '^bc', 'identit'],
      },
      adm: {
        commands: {
          top: {
            commands: {
              ...clusters.kubectl!.commands!.top!.commands,
              ...sameGrammar('images imagestreams persistentvolumeclaims pvc', {}),
            },
          },
          policy: { commands: { 'who-can': whoCan } },
          // Excluded: a version or a channel, with which it begins an upgrade.
          upgrade: { manual: 'oc adm upgrade, 4.14', options: spellOptions({ flag: '--include-not-recommended' }) },
          'node-logs': plain(
            'oc adm node-logs, 4.14',
            spellOptions({ text: '-u --unit --role --since --until --tail -g --grep -l --selector', flag: '--boot=0' }),
            { operands: { first: ['name'] }, requires: ['--tail', '--since', '-g', '--grep'] },
          ),
        },
      },
    },
  },
  kubeadm: verbs('kubeadm, 1.29', 'version, certs check-expiration', output),
  nerdctl: {
    ...containers.docker!,
    manual: 'nerdctl, 1.7',
    options: spellOptions({ name: '-n --namespace', flag: '-v --version' }),
  },
}

/**
 * Programs that send a packet to a named host. The model may add no data: no request bodies, no
 * headers, no look-up of unknown names.
 */
export const remote: Grammars = {
  curl: {
    // Excluded: -d without -G, -F and -T send data; -A, -e and -b may send anything out; -K reads
    // options; -O and -D write; -x uses a proxy; -L follows redirections; -w @file reads a file.
    // Braces and brackets make many addresses.
    manual: 'curl(1), curl 7.88',
    options: spellOptions({
      flag: `-0 -4 -6 -f -g -G --get -i -I -k -N -q -s -S -v -Z --compressed --fail --fail-with-body --head --http1.1 --http2 --include
        --globoff --http1.0 --insecure --ipv4 --ipv6 --no-buffer --no-progress-meter --show-error --silent --tlsv1.2 --tlsv1.3 --verbose -h --help
        -V --version`,
      number: '-m --connect-timeout --max-time --retry-delay --max-filesize --max-redirs',
      header: '-H --header',
      method: '-X --request',
      credential: '-E --cert --key --cacert',
      resolved: '--resolve',
      count: '--retry',
      wait: '--retry-max-time',
      sink: '-o --output',
      text: '-w --write-out -r --range',
      url: '--url',
      parameter: '-d --data --data-raw',
      encoded: '--data-urlencode',
    }),
    operands: { rest: 'url', min: 1, unlessOption: ['--url', '--version', '-V', '--help', '-h'] },
    refuses: ['^@', '%output', '^(?![\\w[\\]]+=).*[{\\[][^}\\]]*[,-][^}\\]]*[}\\]]'],
  },
  dig: {
    // Excluded: -f reads names from a file, -k reads a key. `@` names the server.
    manual: 'dig(1), BIND 9.18',
    options: spellOptions({
      flag: `-4 -6 -m -r -u -v +short +noall +answer +trace +stats +nostats +comments +nocomments +question +noquestion +authority
        +noauthority +additional +noadditional +tcp +notcp +dnssec +norecurse +recurse +multiline +identify +nsid +cmd +nocmd
        +all +search +nosearch +cdflag +adflag +vc +ttlid +ttlunits
        +time=1 +time=2 +time=3 +time=5 +tries=1 +tries=2 +tries=3 +retry=0 +retry=1`,
      text: '-c -t',
      number: '-p',
      host: '-q -x',
    }),
    style: 'word',
    operands: { rest: 'host', min: 1, unlessOption: ['-q', '-x'] },
    keywords:
      'A AAAA ANY CAA CNAME DNSKEY DS MX NAPTR NS PTR SOA SRV TXT IN a aaaa any caa cname mx ns ptr soa srv txt'.split(
        ' ',
      ),
  },
  fping: {
    manual: 'fping(8), fping 5.1',
    options: spellOptions({
      flag: '-4 -6 -a -A -d -e -n -q -s -u -v',
      number: '-b -B -i -p -t',
      count: '-c -C -r',
      text: '-I',
    }),
    operands: { rest: 'host', min: 1 },
  },
  host: {
    manual: 'host(1), BIND 9.18',
    options: spellOptions({ flag: '-4 -6 -a -C -d -r -s -T -U -v -V', text: '-c -t', number: '-N -R -W' }),
    operands: { first: ['host', 'host'], min: 1 },
  },
  ...sameGrammar('mtr mtr-packet', {
    // Excluded: -F reads names from a file. Without a report it needs a terminal.
    manual: 'mtr(8), mtr 0.95',
    options: spellOptions({
      flag: '-4 -6 -b -e -j -l -n -r -T -u -w -z --aslookup --json --no-dns --report --report-wide --show-ips --tcp --udp',
      number: '-B -f -G -i -m -P -Q -s -U -Z --interval --max-ttl --port --psize --timeout',
      count: '-c --report-cycles',
    }),
    operands: { first: ['host'], min: 1 },
    endless: {
      when: 'always',
      unless: ['-r', '-w', '-j', '--report', '--report-wide', '--json'],
      instead: { drop: [], add: ['--report', '-c', '5'] },
    },
  }),
  ...sameGrammar('nc ncat netcat', {
    // Requires -z or an input that only reads, because without -z the program sends its input.
    // Excluded: -e and -c run programs, -l listens.
    manual: 'nc(1), OpenBSD netcat 1.219',
    options: spellOptions({ flag: '-4 -6 -n -N -r -t -u -v -z', number: '-w -i -q' }),
    operands: { first: ['host', 'number'], min: 2 },
    requires: ['-z'],
    // Matches commands of ZooKeeper, memcached and Redis that only read.
    input: '^\\s*(?:ruok|srvr|stat|mntr|isro|wchs|version|stats|ping|info|quit)\\s*(?:quit\\s*)?$',
  }),
  nslookup: {
    manual: 'nslookup(1), BIND 9.18',
    style: 'word',
    options: spellOptions({
      text: '-type -query -class',
      'text?': '-type -query -class -querytype',
      'number?': '-timeout -retry -port',
    }),
    operands: { first: ['host', 'host'], min: 1 },
  },
  ...sameGrammar('ping ping4 ping6', {
    // Excluded: -f floods; -p and -s fill the packet with bytes that the model chooses.
    manual: 'ping(8), iputils 20221126',
    options: spellOptions({
      flag: '-4 -6 -a -A -D -n -O -q -r -R -v -V',
      number: '-c -i -M -Q -t -w -W',
      name: '-I',
    }),
    operands: { first: ['host'], min: 1 },
    endless: { when: 'always', unless: ['-c', '-w'], instead: { drop: [], add: ['-c', '4'] } },
  }),
  ...sameGrammar('traceroute traceroute6 tracepath tracepath6', {
    manual: 'traceroute(8); tracepath(8), iputils 20221126',
    options: spellOptions({
      flag: '-4 -6 -A -b -e -F -I -n -r -T -U --back --icmp --mtu --tcp --udp',
      number: '-f -l -m -N -p -q -w -z',
      name: '-i',
    }),
    operands: { first: ['host', 'number'], min: 1 },
  }),
  wget: {
    // Requires -O - or --spider, because otherwise wget writes a file. The executor's settings for
    // wget switch off redirections, which could lead to another host.
    manual: 'wget(1), GNU Wget 1.21',
    options: spellOptions({
      flag: '-4 -6 -nv -q -S --max-redirect=0 --no-hsts --no-check-certificate --no-verbose --quiet --server-response --spider',
      number: '-t -T --timeout --tries',
      sink: '-O --output-document',
    }),
    operands: { rest: 'url', min: 1 },
    requires: ['--spider', '-O', '--output-document'],
  },
}
