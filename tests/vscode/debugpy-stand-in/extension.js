// What the Python debugger's extension does for `connect`, and no more: its own adapter is never
// started, VS Code talks to the port. (The real extension is not to be had without its marketplace.)
const vscode = require('vscode');

exports.activate = (context) => {
  const connect = ({ configuration: { connect } }) =>
    new vscode.DebugAdapterServer(connect.port, connect.host);
  context.subscriptions.push(
    vscode.debug.registerDebugAdapterDescriptorFactory('debugpy', {
      createDebugAdapterDescriptor: connect,
    }),
  );
};
