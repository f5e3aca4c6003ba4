import { flags, type Grammar, type Grammars, sameGrammar, spellOptions } from '../grammar.ts'

const text = { rest: 'text' } as const
const one = (manual: string, flag = '', values = '', operands?: Grammar['operands']): Grammar => ({
  manual,
  options: spellOptions({ ...(flag ? { flag } : {}), ...(values ? { text: values } : {}) }),
  ...(operands ? { operands } : {}),
})
const version = (manual: string, flag: string): Grammar => ({
  manual,
  options: spellOptions({ flag }),
  requires: flag.split(' '),
})

/** Schedulers, services, mail, time, web servers, login bans: only the forms that read. */
export const tools: Grammars = {
  'aa-status': one(
    'aa-status(8), AppArmor 3.0',
    '--enabled --enforced --complaining --profiled --json --pretty-json --verbose',
  ),
  ...sameGrammar('ansible ansible-playbook ansible-galaxy', version('ansible(1)', '--version')),
  // Allows -t, which reads the configuration and opens its logs, as every restart does first.
  ...sameGrammar('apachectl apache2ctl httpd', {
    ...one('apachectl(8), Apache 2.4', '-l -M -S -t -v -V'),
    requires: ['-l', '-M', '-S', '-t', '-v', '-V'],
  }),
  ...sameGrammar('atq', one('atq(1), at 3.2')),
  auditctl: { ...one('auditctl(8), audit 3.0', '-l -s'), requires: ['-l', '-s'] },
  ausearch: {
    manual: 'ausearch(8), audit 3.0',
    options: spellOptions({
      flag: '-i --interpret -l --raw',
      text: '-k -m -ts -te -x -c -ui -p -sv --key --message --start --end --executable --success',
    }),
    style: 'word',
    // Excluded: typed text, which includes passwords.
    refuses: ['tty'],
  },
  chronyc: {
    // Excluded: -h connects to another machine; add, delete, makestep and other verbs change
    // something.
    manual: 'chronyc(1), chrony 4.3',
    options: spellOptions({ flag: '-4 -6 -a -c -e -m -n -N -v' }),
    commands: sameGrammar(
      'activity authdata clients ntpdata rtcdata selectdata serverstats sources sourcestats tracking',
      one('chronyc(1)', '-a -v'),
    ),
  },
  crontab: { ...one('crontab(1), cron 3.0', '-l', '-u'), requires: ['-l'] },
  doveconf: one('doveconf(1), Dovecot 2.3', '-n -N'),
  'fail2ban-client': {
    manual: 'fail2ban-client(1), 1.0',
    commands: {
      ...sameGrammar('banned ping version', one('fail2ban-client(1)')),
      status: one('fail2ban-client(1)', '', '', { first: ['name'] }),
    },
  },
  'firewall-cmd': {
    // Excluded: --add-*, --remove-*, --set-*, --reload and --direct, which change something.
    manual: 'firewall-cmd(1), firewalld 1.3',
    options: spellOptions({
      flag: `--get-active-zones --get-default-zone --get-icmptypes --get-log-denied --get-services --get-zones --list-all --list-all-zones
        --list-forward-ports --list-icmp-blocks --list-interfaces --list-ports --list-protocols --list-rich-rules --list-services
        --list-sources --permanent --state --version`,
      text: '--zone --info-service --info-zone',
    }),
  },
  getenforce: one('getenforce(8)'),
  haproxy: {
    manual: 'haproxy(1), HAProxy 2.6',
    options: spellOptions({ flag: '-c -q -v -vv -V', file: '-f' }),
    requires: ['-c', '-v', '-vv'],
  },
  ...sameGrammar('java javac', { ...version('java(1)', '-version --version'), style: 'word' }),
  logrotate: {
    manual: 'logrotate(8), 3.21',
    options: spellOptions({ flag: '-d -v --debug --verbose --version' }),
    operands: { rest: 'file' },
    requires: ['-d', '--debug', '--version'],
  },
  mailq: one('mailq(1)'),
  monit: {
    manual: 'monit(1), 5.33',
    options: spellOptions({ flag: '-V' }),
    commands: sameGrammar('status summary', one('monit(1)', '', '', { rest: 'name' })),
  },
  'named-checkconf': {
    manual: 'named-checkconf(1), BIND 9.18',
    options: spellOptions({ flag: '-h -j -v -z' }),
    operands: { first: ['file'] },
  },
  'named-checkzone': {
    manual: 'named-checkzone(1), BIND 9.18',
    options: spellOptions({ flag: '-h -j -q -v' }),
    operands: { first: ['text', 'file'], min: 2 },
  },
  nginx: {
    // Prints the whole configuration with -T. Excluded: -c and -p read another configuration, -g
    // takes directives, -s sends signals.
    manual: 'nginx(8), nginx 1.22',
    options: spellOptions({ flag: '-h -q -t -T -v -V -?' }),
    requires: ['-h', '-t', '-T', '-v', '-V', '-?'],
  },
  ntpq: { ...one('ntpq(1), ntp 4.2', '-4 -6 -n -p -w --numeric --peers --wide'), requires: ['-p', '--peers'] },
  // Allows -n, -d, -x or no option, which print settings. Excluded: name=value and -e, which edit;
  // -M, which runs programs. pm2 is not listed, because any word starts its daemon.
  postconf: { ...one('postconf(1), Postfix 3.7', '-d -h -n -x', '', { rest: 'name' }), refuses: ['='] },
  postqueue: { ...one('postqueue(1), Postfix 3.7', '-j -p'), requires: ['-j', '-p'] },
  sestatus: one('sestatus(8)', '-b -v'),
  ...sameGrammar('sshd', { ...one('sshd(8), OpenSSH 9.2', '-t -T'), requires: ['-t', '-T'] }),
  supervisorctl: {
    // Excluded: -c reads another configuration, -s connects to another server; tail may never end.
    manual: 'supervisorctl, Supervisor 4.2',
    commands: {
      ...sameGrammar('avail pid version', one('supervisorctl', '', '', { first: ['name'] })),
      status: one('supervisorctl', '', '', { rest: 'text' }),
    },
  },
  terraform: {
    // Excluded: show and state print secrets, plan runs providers.
    manual: 'terraform(1), 1.7',
    options: spellOptions({ flag: '-v -version --version' }),
    style: 'word',
    bare: true,
    commands: {
      ...sameGrammar('version', one('terraform version', '-json')),
      state: { commands: sameGrammar('list', one('terraform state list', '', '', text)) },
    },
  },
  ...sameGrammar('bash cargo gcc g++ make', version('the manual of each', '--version')),
  ...sameGrammar('node perl php ruby', version('the manual of each', '-v --version')),
  ...sameGrammar('python python2 python3 rustc', version('the manual of each', '-V --version')),
  go: { manual: 'go, 1.21', commands: { version: one('go version') } },
  ...sameGrammar('type', {
    manual: 'bash(1), type',
    options: spellOptions({ flag: '-a -f -p -P -t' }),
    operands: { rest: 'name', min: 1 },
  }),
  ufw: {
    manual: 'ufw(8), ufw 0.36',
    commands: {
      status: one('ufw(8)', '', '', { first: ['name'] }),
      ...sameGrammar('version', one('ufw(8)')),
      app: {
        commands: { list: one('ufw(8)'), info: one('ufw(8)', '', '', { first: ['text'], min: 1 }) },
      },
    },
  },
  visudo: { ...one('visudo(8), sudo 1.9', '-c -q'), requires: ['-c'] },
  // Allows only `status` as the first word, which is carried out on the services that follow.
  sv: {
    manual: 'sv(8), runit 2.1',
    commands: sameGrammar('status s', { operands: { rest: 'text', min: 1 }, refusesOperands: ['^-'] }),
  },
  asterisk: {
    // Allows -x, a command for the daemon, only with the listed commands. Names of peers are shown,
    // without the lines that hold their passwords.
    manual: 'asterisk(8), Asterisk 20: CLI commands',
    options: spellOptions({ text: '-x -rx', flag: '-r -n -V' }),
    requires: ['-rx', '-x', '-V'],
    style: 'word',
    refuses: [
      '^(?!(core show (channels|uptime|version|calls|threads|taskprocessors|hints)( (verbose|concise|seconds|count))?|sip show (peers|registry|channels)|pjsip show (endpoints|contacts|registrations|channels|aors)|iax2 show (peers|registry|channels)|queue show( [\\w-]+)?|database show status|module show( like [\\w.]+)?|dialplan show hints|rtp show settings)$)',
    ],
  },
  exiqgrep: flags('exiqgrep(8), Exim 4.96', '-c -b -i -l -R -x -z', '-f -r -s -y -o', {}),
  lpstat: flags('lpstat(1), CUPS 2.4', '-a -c -d -H -l -o -p -r -R -s -t -v', '', {}),
}

/**
 * Excluded everywhere: -out writes, -engine and -provider load code, -key, -pass and the like read
 * secrets. s_client sends its input: nothing, or the letter that ends it.
 */
export const openssl: Grammars = {
  openssl: {
    manual: 'openssl(1), OpenSSL 3.0',
    style: 'word',
    commands: {
      ciphers: {
        options: spellOptions({ flag: '-s -v -V -tls1_2 -tls1_3 -stdname' }),
        operands: { first: ['text'] },
      },
      crl: {
        options: spellOptions({
          flag: '-noout -text -issuer -lastupdate -nextupdate -hash -fingerprint -crlnumber',
          certificate: '-in',
          text: '-inform -nameopt',
        }),
      },
      list: {
        options: spellOptions({
          flag: '-commands -digest-commands -cipher-commands -cipher-algorithms -providers -disabled',
        }),
      },
      req: {
        options: spellOptions({
          flag: '-noout -text -subject -verify -pubkey',
          certificate: '-in',
          text: '-inform -nameopt',
        }),
        requires: ['-in'],
      },
      verify: {
        options: spellOptions({
          flag: '-verbose -show_chain -x509_strict -partial_chain',
          certificate: '-CAfile -untrusted -trusted -CRLfile',
          file: '-CApath',
          text: '-purpose -verify_hostname',
        }),
        operands: { rest: 'certificate' },
      },
      s_client: {
        // Excluded: -CAfile and the like read a file; -keylogfile, -sess_out and -msgfile write
        // one; -key and -cert send an identity of the client; -proxy uses another host.
        options: spellOptions({
          flag: '-showcerts -brief -quiet -no_ign_eof -status -tls1_2 -tls1_3 -no_ssl3 -4 -6 -verify_quiet -verify_return_error -servername_none -tlsextdebug -state -prexit',
          host: '-connect -host',
          name: '-servername -verify_hostname -starttls -alpn -cipher -ciphersuites -groups',
          number: '-port -verify -verify_depth',
        }),
        requires: ['-connect', '-host'],
        input: '^[Q\\s]*$',
      },
      version: { options: spellOptions({ flag: '-a -b -d -f -o -p -v -r -m -e' }) },
      x509: {
        options: spellOptions({
          flag: `-noout -text -subject -issuer -dates -startdate -enddate -serial -fingerprint -sha1 -sha256 -hash -subject_hash -issuer_hash
            -purpose -pubkey -modulus -email -ocsp_uri -ocspid`,
          certificate: '-in',
          text: '-inform -nameopt -certopt -ext -checkend -checkhost -checkip -checkemail',
        }),
      },
    },
  },
}
