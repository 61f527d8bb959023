source("lib.R"); 
d<-read.csv("rhc.csv"); xs<-setdiff(names(d),c("id","time","event","swang1")); X<-as.matrix(d[,xs])
V<-list(R=R.version.string,survival=as.character(packageVersion("survival")),glmnet=as.character(packageVersion("glmnet")))
g<-glm(swang1~.,data=d[,c("swang1",xs)],family=binomial,control=glm.control(epsilon=1e-14,maxit=100))
ps<-fitted(g); n1<-sum(d$swang1); auc<-(sum(rank(ps)[d$swang1==1])-n1*(n1+1)/2)/(n1*(nrow(d)-n1))
smd<-function(x,t,w=rep(1,length(x))){ m1<-weighted.mean(x[t==1],w[t==1]); m0<-weighted.mean(x[t==0],w[t==0]); v1<-var(x[t==1]); v0<-var(x[t==0]); (m1-m0)/sqrt((v1+v0)/2)}
gl<-glmnet(X,d$swang1,family="binomial",lambda=0.004*c(8,4,2,1),standardize=FALSE,thresh=1e-16,maxit=1e7)
b<-as.numeric(coef(gl,s=0.004)); 
q<-cut(ps,quantile(ps,0:5/5),include.lowest=TRUE,labels=FALSE); d$q<-q
iptw<-ifelse(d$swang1==1,mean(d$swang1)/ps,(1-mean(d$swang1))/(1-ps)); d$iptw<-iptw
un<-cox(Surv(time,event)~swang1,d,"breslow",zph=FALSE); st<-cox(Surv(time,event)~swang1+strata(q),d,"breslow",zph=FALSE)
ip<-coxph(Surv(time,event)~swang1,d,weights=iptw,ties="breslow",robust=TRUE,control=coxph.control(eps=1e-12,iter.max=100,toler.chol=1e-14))
ad<-coxph(as.formula(paste("Surv(time,event)~swang1+",paste(xs,collapse="+"))),d,ties="breslow",control=coxph.control(eps=1e-12,iter.max=100,toler.chol=1e-14))
lp<-qlogis(ps)
# closest pair first, global greedy, brute force
cal<-0.2*sd(lp); tI<-which(d$swang1==1); cI<-which(d$swang1==0); D<-abs(outer(lp[tI],lp[cI],"-")); k<-which(D<=cal,arr.ind=TRUE); o<-order(D[k],d$id[tI[k[,1]]],d$id[cI[k[,2]]]); k<-k[o,]
ut<-logical(length(tI)); uc<-logical(length(cI)); keep<-logical(nrow(k)); for(i in seq_len(nrow(k))) if(!ut[k[i,1]]&&!uc[k[i,2]]){keep[i]<-TRUE; ut[k[i,1]]<-TRUE; uc[k[i,2]]<-TRUE}
pr<-k[keep,]; md<-d[c(tI[pr[,1]],cI[pr[,2]]),]; md$set<-rep(seq_len(nrow(pr)),2); mm<-cox(Surv(time,event)~swang1,md,"breslow",zph=FALSE); ms<-cox(Surv(time,event)~swang1+strata(set),md,"breslow",zph=FALSE)
J(list(versions=V,n=nrow(d),treated=n1,columns=xs,ps_logistic_mle=nm(coef(g)),ps_auc=auc,ps_head=head(as.numeric(ps),10),
 ps_lasso=list(note="glmnet binomial, lambda per row 0.004, standardize=FALSE, intercept unpenalised",lambda=0.004,coef=as.list(setNames(b[b!=0],c("(Intercept)",colnames(X))[b!=0]))),
 smd_before=as.list(sapply(xs,function(c) smd(d[[c]],d$swang1))),smd_note="(mean1-mean0)/sqrt((var1+var0)/2), sample variances n-1",
 cox_unadjusted=un,cox_stratified_by_ps_quintile=st,iptw_stabilised=list(coef=as.numeric(coef(ip)),robust_var=as.numeric(ip$var),head=head(iptw,10)),cox_all_covariates=list(coef_swang1=as.numeric(coef(ad)["swang1"]),se_swang1=sqrt(ad$var[1,1]),loglik=ad$loglik),
 match_1to1_closest_pair_first=list(note="all treated-control pairs within 0.2 SD (sample SD over everybody) of the logit of ps_logistic_mle, taken closest first, ties by id, without replacement",caliper=cal,pairs=nrow(pr),max_distance=max(D[pr]),coef_swang1=as.numeric(mm$coef[[1]]),se=sqrt(mm$vcov_naive[1]),coef_swang1_stratified_by_pair=as.numeric(ms$coef[[1]]),smd_after_max=max(abs(sapply(xs,function(c) smd(md[[c]],md$swang1)))))),"rhc.json")
cat("matched pairs",nrow(pr),"HR",exp(mm$coef[[1]]),"unadj",exp(un$coef[[1]]),"strat",exp(st$coef[[1]]),"iptw",exp(coef(ip)),"AUC",auc,"sd logit",sd(lp),"\n")
